-- What the other files stand on: the schema, the clock, settings of the service.
--
-- Times are Unix ms. Names that clients or the site choose are bytea, UTF-8: text cannot hold NUL.

-- Other encodings refuse some texts, and with them whole groups of publications.
DO $$ BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE 'the database has the encoding %, and the engine needs UTF8',
            current_setting('server_encoding') USING ERRCODE = 'feature_not_supported';
    END IF;
END $$;

-- One at a time: two that create a schema or replace a function at once would fail.
SELECT pg_advisory_xact_lock(hashtextextended('{schema}.create', 0));

CREATE SCHEMA IF NOT EXISTS {schema};

-- The clock of everything that expires. Not now(): a transaction may have waited for a lock.
CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Unix microseconds, to order what is sent with what is asked.
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE TABLE IF NOT EXISTS {schema}.setting (
    name text PRIMARY KEY,
    value text NOT NULL
);
