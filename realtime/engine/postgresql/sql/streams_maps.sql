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
CREATE INDEX IF NOT EXISTS map_entry_expires ON {schema}.map_entry (expires)
    WHERE expires IS NOT NULL;

-- Begin a change of a map, or return why it is not made: all but the put, which needs its place in
-- the stream. The stream is locked until the end of the transaction, without one the channel.
--
-- change, checks  see `publish_many`
-- top, epoch      the position for the answer; NULL without a stream
-- reason          why not; NULL: the change is made
-- id              of the map
-- is_new          whether the key has no entry
-- entry_*         that entry, where the change is not made
-- kept_meta       `meta`, or longer: the stream is not forgotten before its entries
CREATE OR REPLACE FUNCTION {schema}.begin_change(
    asked bytea, size integer, meta bigint, fresh text, change jsonb, checks jsonb, timeline text,
    OUT top bigint, OUT epoch text, OUT reason text, OUT id bigint, OUT is_new boolean,
    OUT entry_off bigint, OUT entry_at bigint, OUT entry_record bytea, OUT kept_meta bigint
) LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
    m {schema}.map;
    e {schema}.map_entry;
    used {schema}.once;
    wanted bytea := decode(change ->> 'key', 'hex');
    mode text := change ->> 'mode';
    put_bytes bigint := change ->> 'bytes';
    ttl bigint := nullif((change ->> 'ttl')::bigint, 0);
    once_key bytea := decode(checks ->> 'once', 'hex');
    now bigint;
    lives boolean;
    new_keys bigint;
    new_bytes bigint;
BEGIN
    IF size = 0 THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}' || encode(asked, 'hex'), 0));
    ELSE
        s := {schema}.lock_stream(asked, fresh, meta);
        top := s.top;
        epoch := s.epoch || timeline;
    END IF;
    now := {schema}.now_ms();
    SELECT * INTO m FROM {schema}.map WHERE channel = asked;
    IF m.id <> s.id THEN  -- the stream has begun again
        DELETE FROM {schema}.map WHERE channel = asked;
        DELETE FROM {schema}.map_entry WHERE map = m.id;
        m := NULL;
    END IF;
    id := coalesce(m.id, s.id, nextval('{schema}.stream_id'));
    IF m.id IS NOT NULL THEN
        SELECT * INTO e FROM {schema}.map_entry WHERE map = m.id AND key = wanted;
    END IF;
    is_new := e.key IS NULL;
    new_keys := coalesce(m.keys, 0) + (put_bytes IS NOT NULL)::integer - (NOT is_new)::integer;
    new_bytes := coalesce(m.bytes, 0) + coalesce(put_bytes, 0) - coalesce(e.bytes, 0);
    lives := NOT is_new AND coalesce(e.expires > now, true);
    IF once_key IS NOT NULL THEN
        SELECT * INTO used FROM {schema}.once WHERE digest = once_key AND expires > now;
    END IF;
    reason := CASE
        WHEN used.digest IS NOT NULL THEN 'idempotency'
        WHEN (change ->> 'offset')::numeric <> coalesce(e.off, 0) OR change ->> 'epoch' <> epoch
            THEN 'position_mismatch'
        WHEN (change ->> 'version')::numeric <= e.version
            AND decode(change ->> 'version_epoch', 'hex') IN ('', e.version_epoch) THEN 'version'
        WHEN lives AND mode IN ('if_new', 'renew', 'if_expired') THEN 'key_exists'
        WHEN NOT lives AND mode = 'if_exists' OR is_new AND put_bytes IS NULL THEN 'key_not_found'
        WHEN put_bytes IS NOT NULL AND (
            new_keys > (change ->> 'most_keys')::bigint
            OR new_bytes > (change ->> 'most_bytes')::bigint
        ) THEN 'full'
    END;
    kept_meta := CASE
        WHEN meta = 0 OR new_keys = 0 THEN meta
        WHEN put_bytes IS NOT NULL AND ttl IS NULL OR m.keys > 0 AND s.expires IS NULL THEN 0
        ELSE greatest(meta, 2 * ttl, CASE WHEN m.keys > 0 THEN s.expires - now END)
    END;
    IF reason IS NOT NULL THEN
        IF reason <> 'key_not_found' THEN
            entry_off := e.off;
            entry_at := e.at;
            entry_record := e.record;
        END IF;
        IF reason = 'idempotency' THEN
            top := used.off;
            epoch := used.epoch || timeline;
        ELSIF reason = 'key_exists' AND mode = 'renew' THEN
            UPDATE {schema}.map_entry SET expires = now + ttl WHERE map = m.id AND key = wanted;
            UPDATE {schema}.stream SET expires = CASE WHEN kept_meta > 0 THEN now + kept_meta END
            WHERE channel = asked AND stream.id = m.id AND expires IS NOT NULL;
        END IF;
        RETURN;
    END IF;
    IF once_key IS NOT NULL THEN
        PERFORM {schema}.use_key(once_key, checks);
    END IF;
    IF put_bytes IS NULL THEN
        DELETE FROM {schema}.map_entry WHERE map = m.id AND key = wanted;
    END IF;
    IF new_keys = 0 THEN
        DELETE FROM {schema}.map WHERE channel = asked;
    ELSIF m.id IS NULL THEN
        INSERT INTO {schema}.map VALUES (asked, id, size > 0, new_keys, new_bytes);
    ELSIF (m.keeps, m.keys, m.bytes) <> (size > 0, new_keys, new_bytes) THEN
        UPDATE {schema}.map SET keeps = size > 0, keys = new_keys, bytes = new_bytes
        WHERE channel = asked;
    END IF;
END $$;

-- Put the entry of a key, after `begin_change`.
CREATE OR REPLACE FUNCTION {schema}.put_entry(
    changed bigint, is_new boolean, change jsonb, new_off bigint, new_at bigint, new_record bytea
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    put {schema}.map_entry;
BEGIN
    put := (
        changed, decode(change ->> 'key', 'hex'), new_off, new_at, new_record, change ->> 'bytes',
        change ->> 'version', decode(change ->> 'version_epoch', 'hex'),
        new_at + nullif((change ->> 'ttl')::bigint, 0)
    );
    IF is_new THEN
        INSERT INTO {schema}.map_entry VALUES (put.*);
    ELSE
        UPDATE {schema}.map_entry SET
            off = put.off, at = put.at, record = put.record, bytes = put.bytes,
            version = put.version, version_epoch = put.version_epoch, expires = put.expires
        WHERE map = put.map AND key = put.key;
    END IF;
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
