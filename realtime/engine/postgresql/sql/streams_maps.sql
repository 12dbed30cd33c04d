-- Maps: the newest put of each key.
--
-- The entries of a map with a stream have the ID of the stream: when that begins again, there are
-- none. Who changes a map has the lock of its stream, or of its channel if it has no stream.

CREATE TABLE IF NOT EXISTS {schema}.map (
    channel bytea PRIMARY KEY,
    id bigint NOT NULL,                 -- of its stream, if it has one
    keeps boolean NOT NULL,             -- whether it has a stream
    keys bigint NOT NULL,
    bytes bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS map_id ON {schema}.map (id);

CREATE TABLE IF NOT EXISTS {schema}.map_entry (
    map bigint NOT NULL,
    key bytea NOT NULL,
    off bigint NOT NULL,                -- 0 without a stream
    at bigint NOT NULL,
    record bytea NOT NULL,
    bytes bigint NOT NULL,              -- of the key and the data, for the bound of the map
    version numeric,
    version_epoch bytea,
    expires bigint,                     -- when its lifetime is over; NULL: never
    PRIMARY KEY (map, key)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS map_entry_expires ON {schema}.map_entry (expires);

-- Publish as `publish` does, with changes of maps among the publications.
--
-- checks   of a change also "change": {"key": hex, "mode"; "bytes": of key and data, absent in a
--          removal; "ttl": ms, 0: forever; "most_keys", "most_bytes": bounds; "offset", "epoch":
--          the expected position of the last change of the key; "version", "version_epoch"}
-- relaxed  whether the commit may be lost in a crash
CREATE OR REPLACE FUNCTION {schema}.publish_changes(
    channels bytea[], records bytea[], uids bytea[], sizes integer[], lifetimes bigint[],
    metas bigint[], fresh text[], checks jsonb[], relaxed boolean
) RETURNS TABLE (
    position_offset bigint, position_epoch text, kept boolean, reason text,
    current_off bigint, current_at bigint, current_record bytea
) LANGUAGE plpgsql AS $$
BEGIN
    IF relaxed THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    FOR n IN 1 .. cardinality(channels) LOOP
        IF checks[n] ? 'change' THEN
            RETURN QUERY SELECT * FROM {schema}.change_map(
                channels[n], records[n], uids[n], sizes[n], lifetimes[n], metas[n], fresh[n],
                checks[n] -> 'change', nullif(checks[n] - 'change', '{}')
            );
        ELSE
            RETURN QUERY SELECT p.*, NULL::text, NULL::bigint, NULL::bigint, NULL::bytea
            FROM {schema}.publish(
                ARRAY[channels[n]], ARRAY[records[n]], ARRAY[uids[n]], ARRAY[sizes[n]],
                ARRAY[lifetimes[n]], ARRAY[metas[n]], ARRAY[fresh[n]], ARRAY[checks[n]]
            ) AS p;
        END IF;
    END LOOP;
END $$;

-- Make one change, or return why not, and the entry of its key.
CREATE OR REPLACE FUNCTION {schema}.change_map(
    asked bytea, content bytea, content_uid bytea, size integer, lifetime bigint, meta bigint,
    fresh text, change jsonb, checks jsonb
) RETURNS TABLE (
    position_offset bigint, position_epoch text, kept boolean, reason text,
    current_off bigint, current_at bigint, current_record bytea
) LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
    m {schema}.map;
    e {schema}.map_entry;
    used {schema}.once;
    wanted bytea := decode(change ->> 'key', 'hex');
    mode text := change ->> 'mode';
    is_put boolean := change ? 'bytes';
    ttl bigint := nullif((change ->> 'ttl')::bigint, 0);
    now bigint;
    lives boolean;
    more_keys integer;
    more_bytes bigint;
BEGIN
    IF size = 0 THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}' || encode(asked, 'hex'), 0));
    ELSE
        s := {schema}.lock_stream(asked, fresh, meta);
        position_offset := s.top;
        position_epoch := s.epoch || {schema}.timeline();
    END IF;
    now := {schema}.now_ms();
    SELECT * INTO m FROM {schema}.map WHERE channel = asked;
    IF m.id <> s.id THEN
        DELETE FROM {schema}.map WHERE channel = asked;
        DELETE FROM {schema}.map_entry WHERE map = m.id;
        m := NULL;
    END IF;
    IF m.id IS NULL THEN
        m := (asked, coalesce(s.id, nextval('{schema}.stream_id')), size > 0, 0, 0);
    ELSE
        SELECT * INTO e FROM {schema}.map_entry WHERE map = m.id AND key = wanted;
    END IF;
    lives := e.key IS NOT NULL AND coalesce(e.expires > now, true);
    more_keys := is_put::integer - (e.key IS NOT NULL)::integer;
    more_bytes := coalesce((change ->> 'bytes')::bigint, 0) - coalesce(e.bytes, 0);
    IF checks ? 'once' THEN
        SELECT * INTO used FROM {schema}.once
        WHERE digest = decode(checks ->> 'once', 'hex') AND expires > now;
    END IF;
    reason := CASE
        WHEN used.digest IS NOT NULL THEN 'idempotency'
        WHEN (change ->> 'offset')::numeric <> coalesce(e.off, 0)
            OR change ->> 'epoch' <> position_epoch THEN 'position_mismatch'
        WHEN (change ->> 'version')::numeric <= e.version
            AND decode(change ->> 'version_epoch', 'hex') IN ('', e.version_epoch) THEN 'version'
        WHEN lives AND mode IN ('if_new', 'renew', 'if_expired') THEN 'key_exists'
        WHEN NOT lives AND mode = 'if_exists' OR e.key IS NULL AND NOT is_put THEN 'key_not_found'
        WHEN is_put AND (
            m.keys + more_keys > (change ->> 'most_keys')::bigint
            OR m.bytes + more_bytes > (change ->> 'most_bytes')::bigint
        ) THEN 'full'
    END;
    IF meta > 0 AND m.keys + more_keys > 0 THEN  -- the stream is not forgotten before its entries
        meta := CASE WHEN ttl IS NULL AND is_put OR s.expires IS NULL AND m.keys > 0 THEN 0
            ELSE greatest(meta, 2 * ttl, CASE WHEN m.keys > 0 THEN s.expires - now END) END;
    END IF;
    IF reason IS NOT NULL THEN
        IF used.digest IS NOT NULL THEN
            position_offset := used.off;
            position_epoch := used.epoch || {schema}.timeline();
        ELSIF reason = 'key_exists' AND mode = 'renew' THEN
            UPDATE {schema}.map_entry SET expires = now + ttl WHERE map = m.id AND key = wanted;
            UPDATE {schema}.stream SET expires = CASE WHEN meta > 0 THEN now + meta END
            WHERE channel = asked AND id = m.id AND expires IS NOT NULL;
        END IF;
        kept := false;
        IF reason <> 'key_not_found' THEN
            current_off := e.off;
            current_at := e.at;
            current_record := e.record;
        END IF;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT p.position_offset, p.position_epoch, p.kept
    INTO position_offset, position_epoch, kept
    FROM {schema}.publish(
        ARRAY[asked], ARRAY[content], ARRAY[content_uid], ARRAY[size], ARRAY[lifetime],
        ARRAY[meta], ARRAY[fresh], ARRAY[checks]
    ) AS p;
    IF is_put THEN
        INSERT INTO {schema}.map_entry AS o VALUES (
            m.id, wanted, coalesce(position_offset, 0),
            CASE WHEN size = 0 THEN now
                ELSE (SELECT t.at FROM {schema}.stream t WHERE t.channel = asked) END,
            content, (change ->> 'bytes')::bigint,
            (change ->> 'version')::numeric, decode(change ->> 'version_epoch', 'hex'), now + ttl
        )
        ON CONFLICT (map, key) DO UPDATE SET
            off = excluded.off, at = excluded.at, record = excluded.record, bytes = excluded.bytes,
            version = excluded.version, version_epoch = excluded.version_epoch,
            expires = excluded.expires;
    ELSE
        DELETE FROM {schema}.map_entry WHERE map = m.id AND key = wanted;
    END IF;
    IF m.keys + more_keys = 0 THEN
        DELETE FROM {schema}.map WHERE channel = asked;
    ELSIF more_keys <> 0 OR more_bytes <> 0 OR m.keeps <> (size > 0) THEN
        INSERT INTO {schema}.map AS o
        VALUES (asked, m.id, size > 0, m.keys + more_keys, m.bytes + more_bytes)
        ON CONFLICT (channel) DO UPDATE SET
            keeps = excluded.keeps, keys = excluded.keys, bytes = excluded.bytes;
    END IF;
    RETURN NEXT;
END $$;

-- Read a map at one moment: the position of its channel, its size, and an entry or NULLs in each row.
--
-- low, high  keys from the one on, and before the other; NULL: to the last one
-- most       entries to return at most
CREATE OR REPLACE FUNCTION {schema}.read_map(
    asked bytea, low bytea, high bytea, most bigint, meta bigint, fresh text, held bigint
) RETURNS TABLE (
    position_offset bigint, position_epoch text, size bigint,
    key bytea, off bigint, at bigint, record bytea
) LANGUAGE plpgsql AS $$
DECLARE
    used {schema}.stream := {schema}.use_stream(asked, meta, fresh, held);
    now bigint := {schema}.now_ms();
BEGIN
    RETURN QUERY
    SELECT
        coalesce(s.top, used.top), coalesce(s.epoch || {schema}.timeline(), used.epoch),
        coalesce(m.keys, 0), e.key, e.off, e.at, e.record
    FROM (SELECT) AS one
    LEFT JOIN {schema}.stream s ON s.channel = asked AND (s.expires IS NULL OR s.expires > now)
    LEFT JOIN {schema}.map m ON m.channel = asked AND (NOT m.keeps OR m.id = s.id)
    LEFT JOIN LATERAL (
        SELECT * FROM {schema}.map_entry x
        WHERE x.map = m.id AND x.key >= low AND (high IS NULL OR x.key < high)
        ORDER BY x.key LIMIT most
    ) AS e ON true
    ORDER BY e.key;
END $$;
