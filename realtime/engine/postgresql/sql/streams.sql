-- Streams of channels: positions, publications, idempotency keys.
--
-- The lock of its row makes the offsets of a channel the order of commits, without gaps. Who changes
-- several channels in one statement takes them in the order of their names, so no two wait for each
-- other.
--
-- An epoch that leaves or enters is the one of the table, and the timeline of the server behind it.
--
-- Publications are in partitions by the day on which they were kept. Trimming moves `floor`; the
-- rows go with their partition.

CREATE SEQUENCE IF NOT EXISTS {schema}.stream_id;

CREATE TABLE IF NOT EXISTS {schema}.stream (
    channel bytea PRIMARY KEY,
    id bigint NOT NULL,                 -- another one when the stream begins again
    top bigint NOT NULL DEFAULT 0,
    epoch text NOT NULL,
    floor bigint NOT NULL DEFAULT 0,    -- the offset up to which nothing is kept
    at bigint NOT NULL DEFAULT 0,       -- when the last publication was kept
    ends bigint NOT NULL DEFAULT 0,     -- when nothing is kept any more
    uid bytea,                          -- of the last publication
    before bytea,                       -- UID of the publication before it
    version numeric,
    version_epoch bytea,
    expires bigint                      -- when the stream is forgotten; NULL: never
) WITH (fillfactor = 70);

CREATE TABLE IF NOT EXISTS {schema}.entry (
    stream bigint NOT NULL,
    off bigint NOT NULL,
    at bigint NOT NULL,
    record bytea NOT NULL,
    before bytea,
    PRIMARY KEY (stream, off, at)
) PARTITION BY RANGE (at);

CREATE TABLE IF NOT EXISTS {schema}.once (
    digest bytea PRIMARY KEY,
    off bigint,                         -- NULL: a channel without history
    epoch text,
    expires bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS once_expires ON {schema}.once (expires);

-- Messages that a ring has no room for, for a minute; with `database_poll`, all of them.
CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.letter (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_us bigint NOT NULL,
    ring bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS letter_at ON {schema}.letter (at_us);

-- Return what the timeline of the server adds to epochs. A promotion begins another timeline, because
-- the replica may lack what was acknowledged; a restart does not. The first timeline adds nothing,
-- like a server that refuses to name it.
CREATE OR REPLACE FUNCTION {schema}.timeline() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    number text;
BEGIN
    number := ltrim(left(pg_walfile_name(pg_current_wal_lsn()), 8), '0');
    RETURN CASE WHEN number = '1' THEN '' ELSE '-' || number END;
EXCEPTION
    WHEN insufficient_resources OR program_limit_exceeded THEN
        RAISE;
    WHEN OTHERS THEN
        RETURN '';
END $$;

-- Return the epoch of channels without a stream; `fresh` if there is none yet.
CREATE OR REPLACE FUNCTION {schema}.first_epoch(fresh text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found_epoch text;
BEGIN
    SELECT value INTO found_epoch FROM {schema}.setting WHERE name = 'epoch';
    IF found_epoch IS NULL THEN
        INSERT INTO {schema}.setting VALUES ('epoch', fresh) ON CONFLICT DO NOTHING;
        SELECT value INTO found_epoch FROM {schema}.setting WHERE name = 'epoch';
    END IF;
    RETURN found_epoch;
END $$;

-- Begin the stream of a channel that has none, or an expired one. `meta`: ms until it is forgotten,
-- 0: never. A stream that begins again has an epoch of its own.
CREATE OR REPLACE FUNCTION {schema}.begin_stream(
    new_channel bytea, fresh text, meta bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now bigint := {schema}.now_ms();
    expiry bigint := CASE WHEN meta > 0 THEN now + meta END;
BEGIN
    INSERT INTO {schema}.stream AS s (channel, id, epoch, expires)
    VALUES (
        new_channel,
        nextval('{schema}.stream_id'),
        CASE WHEN meta > 0 THEN fresh ELSE {schema}.first_epoch(fresh) END,
        expiry
    )
    ON CONFLICT (channel) DO UPDATE SET
        id = excluded.id, top = 0, epoch = fresh, floor = 0, at = 0, ends = 0, uid = NULL,
        before = NULL, version = NULL, version_epoch = NULL, expires = expiry
    WHERE s.expires <= now;
END $$;

-- Publish in several channels, sorted by name.
--
-- sizes      publications to keep; 0: the channel has no history
-- lifetimes  ms to keep them after the last one
-- metas      ms after which an unused stream is forgotten; 0: never
-- fresh      epochs of streams that have none
-- checks     NULL, or what is asked before, in this order:
--            {"once", "lifetime": hex digest and ms; "offset", "epoch": the expected top;
--             "version", "version_epoch": number and hex}
--            "send": without history, what sends the publication; see `send`
--            "change": of a change of a map:
--            {"key": hex, "mode"; "bytes": of key and data, absent in a removal; "ttl": ms, 0: for
--             ever; "most_keys", "most_bytes"; "offset", "epoch", "version", "version_epoch": as
--             above, but of the last change of the key}
-- relaxed    whether a crash may take it back
--
-- reason, entry_*  why a change was not made, and the entry of its key
CREATE OR REPLACE FUNCTION {schema}.publish_many(
    channels bytea[], records bytea[], uids bytea[], sizes integer[], lifetimes bigint[],
    metas bigint[], fresh text[], checks jsonb[], relaxed boolean
) RETURNS TABLE (
    position_offset bigint, position_epoch text, kept boolean, reason text,
    entry_off bigint, entry_at bigint, entry_record bytea
) LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
    now bigint;
    meta bigint;
    change jsonb;
    begun record;
    timeline text := {schema}.timeline();
BEGIN
    IF relaxed THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    FOR n IN 1 .. cardinality(channels) LOOP
        IF reason IS NOT NULL THEN
            reason := NULL;
            entry_off := NULL;
            entry_at := NULL;
            entry_record := NULL;
        END IF;
        kept := true;
        meta := metas[n];
        change := checks[n] -> 'change';
        IF change IS NOT NULL THEN
            begun := {schema}.begin_change(
                channels[n], sizes[n], meta, fresh[n], change, checks[n], timeline
            );
            position_offset := begun.top;
            position_epoch := begun.epoch;
            reason := begun.reason;
            entry_off := begun.entry_off;
            entry_at := begun.entry_at;
            entry_record := begun.entry_record;
            meta := begun.kept_meta;
            kept := reason IS NULL;
        ELSIF checks[n] IS NOT NULL THEN
            SELECT c.o, c.e || timeline, NOT c.r INTO position_offset, position_epoch, kept
            FROM {schema}.check_publication(
                channels[n], sizes[n], metas[n], fresh[n], checks[n]
            ) AS c(o, e, r);
        END IF;
        IF kept AND checks[n] ? 'send' THEN
            PERFORM {schema}.send(checks[n] -> 'send');
        END IF;
        IF kept AND sizes[n] > 0 THEN
            LOOP
                now := {schema}.now_ms();
                UPDATE {schema}.stream SET
                    top = stream.top + 1,
                    floor = greatest(
                        CASE WHEN ends <= now THEN stream.top ELSE floor END,
                        stream.top + 1 - sizes[n]
                    ),
                    at = greatest(stream.at, now),
                    ends = now + lifetimes[n],
                    before = stream.uid,
                    uid = uids[n],
                    version = coalesce((checks[n] ->> 'version')::numeric, stream.version),
                    version_epoch = CASE WHEN checks[n] ? 'version'
                        THEN decode(checks[n] ->> 'version_epoch', 'hex')
                        ELSE stream.version_epoch END,
                    expires = CASE WHEN meta > 0 THEN now + greatest(meta, 2 * lifetimes[n]) END
                WHERE channel = channels[n] AND (expires IS NULL OR expires > now)
                RETURNING * INTO s;
                EXIT WHEN FOUND;
                PERFORM {schema}.begin_stream(channels[n], fresh[n], metas[n]);
            END LOOP;
            INSERT INTO {schema}.entry VALUES (s.id, s.top, s.at, records[n], s.before);
            IF checks[n] ? 'once' THEN
                UPDATE {schema}.once SET off = s.top, epoch = s.epoch
                WHERE digest = decode(checks[n] ->> 'once', 'hex');
            END IF;
            position_offset := s.top;
            position_epoch := s.epoch || timeline;
        END IF;
        IF kept AND change ? 'bytes' THEN
            PERFORM {schema}.put_entry(
                begun.id, begun.is_new, change, coalesce(position_offset, 0),
                CASE WHEN sizes[n] > 0 THEN s.at ELSE {schema}.now_ms() END, records[n]
            );
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- As nodes of older versions publish.
CREATE OR REPLACE FUNCTION {schema}.publish(
    channels bytea[], records bytea[], uids bytea[], sizes integer[], lifetimes bigint[],
    metas bigint[], fresh text[], checks jsonb[]
) RETURNS TABLE (position_offset bigint, position_epoch text, kept boolean) LANGUAGE sql AS $$
    SELECT position_offset, position_epoch, kept FROM {schema}.publish_many(
        channels, records, uids, sizes, lifetimes, metas, fresh, checks, false
    )
$$;

-- Send a publication in the transaction that uses its key, so that both happen or neither. That
-- costs the lock of the server which a NOTIFY holds until it is on disk.
--
-- content  {"letter": a text to be kept for a minute;
--           "notify", "ring": channel and payload of a notification, without the end if it names
--           the letter}
CREATE OR REPLACE FUNCTION {schema}.send(content jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    waits text := current_setting('synchronous_commit');
    letters bigint[];
BEGIN
    IF content ? 'letter' THEN
        letters := ARRAY(SELECT {schema}.post(ARRAY[convert_to(content ->> 'letter', 'UTF8')]));
        PERFORM set_config('synchronous_commit', waits, true);
    END IF;
    IF content ? 'notify' THEN
        PERFORM pg_notify(
            content ->> 'notify',
            {schema}.now_us() || ' ' || (content ->> 'ring') || coalesce(letters[1] || ']]]', '')
        );
    END IF;
END $$;

-- Use an idempotency key, for its lifetime.
CREATE OR REPLACE FUNCTION {schema}.use_key(
    unused bytea, checks jsonb
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.once
    VALUES (unused, NULL, NULL, {schema}.now_ms() + (checks ->> 'lifetime')::bigint)
    ON CONFLICT (digest) DO UPDATE SET off = NULL, epoch = NULL, expires = excluded.expires;
END $$;

-- Return the stream of a channel, locked until the end of the transaction.
CREATE OR REPLACE FUNCTION {schema}.lock_stream(
    asked bytea, fresh text, meta bigint
) RETURNS {schema}.stream LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
BEGIN
    LOOP
        SELECT * INTO s FROM {schema}.stream
        WHERE channel = asked AND (expires IS NULL OR expires > {schema}.now_ms()) FOR UPDATE;
        IF FOUND THEN
            RETURN s;
        END IF;
        PERFORM {schema}.begin_stream(asked, fresh, meta);
    END LOOP;
END $$;

-- Ask what decides whether a publication is made, and use its key if it is. The channel is locked
-- then, until the end of the transaction.
CREATE OR REPLACE FUNCTION {schema}.check_publication(
    asked bytea, size integer, meta bigint, fresh text, checks jsonb,
    OUT top_offset bigint, OUT top_epoch text, OUT refused boolean
) LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
    used {schema}.once;
    key bytea := decode(checks ->> 'once', 'hex');
    now bigint;
BEGIN
    refused := true;
    IF size = 0 THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}' || encode(asked, 'hex'), 0));
    ELSE
        s := {schema}.lock_stream(asked, fresh, meta);
        top_offset := s.top;
        top_epoch := s.epoch;
    END IF;
    now := {schema}.now_ms();
    IF key IS NOT NULL THEN
        SELECT * INTO used FROM {schema}.once WHERE digest = key AND expires > now;
        IF FOUND THEN
            top_offset := used.off;
            top_epoch := used.epoch;
            RETURN;
        END IF;
    END IF;
    IF size > 0 THEN
        IF (checks ->> 'offset')::numeric <> s.top
            OR checks ->> 'epoch' <> s.epoch || {schema}.timeline() THEN
            RETURN;
        END IF;
        IF (checks ->> 'version')::numeric <= s.version
            AND decode(checks ->> 'version_epoch', 'hex') IN ('', s.version_epoch) THEN
            RETURN;
        END IF;
    END IF;
    IF key IS NOT NULL THEN
        PERFORM {schema}.use_key(key, checks);
    END IF;
    refused := false;
END $$;

-- Return the stream of a channel, and keep it longer where streams are forgotten.
--
-- meta   ms after which an unused stream is forgotten; 0: never
-- held   the same for one without publications
CREATE OR REPLACE FUNCTION {schema}.use_stream(
    asked bytea, meta bigint, fresh text, held bigint
) RETURNS {schema}.stream LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
    now bigint := {schema}.now_ms();
    lifetime bigint;
BEGIN
    SELECT * INTO s FROM {schema}.stream
    WHERE channel = asked AND (expires IS NULL OR expires > now);
    IF NOT FOUND THEN
        IF meta = 0 THEN  -- clients may ask for any channel: nothing is written
            s.top := 0;
            s.floor := 0;
            s.at := 0;
            s.ends := 0;
            s.epoch := {schema}.first_epoch(fresh) || {schema}.timeline();
            RETURN s;
        END IF;
        PERFORM {schema}.begin_stream(asked, fresh, least(meta, held));
        SELECT * INTO s FROM {schema}.stream WHERE channel = asked;
    ELSIF meta > 0 OR s.expires IS NOT NULL THEN
        lifetime := CASE WHEN s.top = 0 THEN least(meta, held) ELSE meta END;
        IF meta = 0 OR s.expires < now + lifetime - lifetime / 100 THEN  -- not by each reading
            UPDATE {schema}.stream SET expires = CASE WHEN meta > 0 THEN now + lifetime END
            WHERE channel = asked AND id = s.id
                AND (meta = 0 OR stream.expires < now + lifetime);
        END IF;
    END IF;
    s.epoch := s.epoch || {schema}.timeline();
    RETURN s;
END $$;

-- Read a stream: first its position with the UID at the top, then publications.
--
-- start  the offset to begin at; NULL: the oldest, or the newest in reverse
-- most   publications to return at most; NULL: all
CREATE OR REPLACE FUNCTION {schema}.read_stream(
    asked bytea, start numeric, most bigint, backwards boolean, meta bigint, fresh text, held bigint
) RETURNS TABLE (off bigint, epoch text, uid bytea, at bigint, record bytea) LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream := {schema}.use_stream(asked, meta, fresh, held);
    low bigint;
    high bigint := s.top;
BEGIN
    RETURN QUERY SELECT s.top, s.epoch, s.uid, s.at, NULL::bytea;
    low := CASE WHEN s.ends > {schema}.now_ms() THEN s.floor ELSE s.top END;
    IF start IS NOT NULL AND backwards THEN
        high := least(start, s.top);
    ELSIF start IS NOT NULL THEN
        low := least(greatest(start - 1, low), s.top);
    END IF;
    IF low >= high OR most = 0 THEN
        RETURN;
    ELSIF backwards THEN
        RETURN QUERY SELECT e.off, NULL::text, e.before, e.at, e.record FROM {schema}.entry e
        WHERE e.stream = s.id AND e.off > low AND e.off <= high ORDER BY e.off DESC LIMIT most;
    ELSE
        RETURN QUERY SELECT e.off, NULL::text, e.before, e.at, e.record FROM {schema}.entry e
        WHERE e.stream = s.id AND e.off > low AND e.off <= high ORDER BY e.off LIMIT most;
    END IF;
END $$;

-- Return the position of each channel, at a time if one is given.
CREATE OR REPLACE FUNCTION {schema}.positions(
    channels bytea[], moment bigint, meta bigint, fresh text[], held bigint
) RETURNS TABLE (off bigint, epoch text) LANGUAGE plpgsql AS $$
DECLARE
    s {schema}.stream;
BEGIN
    FOR n IN 1 .. cardinality(channels) LOOP
        s := {schema}.use_stream(channels[n], meta, fresh[n], held);
        off := s.top;
        epoch := s.epoch;
        IF s.at > moment THEN
            off := 0;
            IF s.ends > {schema}.now_ms() THEN
                SELECT e.off INTO off FROM {schema}.entry e
                WHERE e.stream = s.id AND e.off > s.floor AND e.off < s.top AND e.at <= moment
                ORDER BY e.off DESC LIMIT 1;
            END IF;
            off := coalesce(off, 0);
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Begin a new epoch of a stream that lost publications in `lost`.
CREATE OR REPLACE FUNCTION {schema}.renew_epoch(
    asked bytea, lost text, fresh text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    timeline text := {schema}.timeline();
BEGIN
    UPDATE {schema}.stream SET epoch = fresh WHERE channel = asked AND epoch || timeline = lost;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM {schema}.stream WHERE channel = asked) THEN
        UPDATE {schema}.setting SET value = fresh
        WHERE name = 'epoch' AND value || timeline = lost;
    END IF;
END $$;

-- Return what followers of channels have not got: rows of a channel, its top, its epoch, and a
-- publication or NULL. `tops`, `epochs`: what they have.
CREATE OR REPLACE FUNCTION {schema}.news(
    channels bytea[], tops bigint[], epochs text[], most integer
) RETURNS TABLE (
    channel bytea, top bigint, epoch text, off bigint, record bytea
) LANGUAGE sql STABLE AS $$
    SELECT s.channel, s.top, s.epoch || t.timeline, e.off, e.record
    FROM {schema}.timeline() AS t(timeline),
        unnest(channels, tops, epochs) AS f(channel, top, epoch)
    JOIN {schema}.stream s ON s.channel = f.channel
    LEFT JOIN LATERAL (
        SELECT n.off, n.record FROM {schema}.entry n
        WHERE n.stream = s.id AND n.off <= s.top AND n.off > greatest(
            s.floor,
            -- a stream that has begun again may be shorter
            CASE WHEN split_part(f.epoch, '-', 1) IN ('', s.epoch) OR f.top < s.top
                THEN f.top ELSE 0 END
        )
        ORDER BY n.off LIMIT most
    ) e ON true
    WHERE s.top <> f.top OR s.epoch || t.timeline <> f.epoch
    ORDER BY s.channel, e.off
$$;

-- Create the partitions of the next days, drop those older than `days`, and forget what has expired.
-- One process at a time; the others have nothing to do, or wait for partitions that are missing.
-- It has the rights of the owner of the tables, so that a user who serves need not own them.
CREATE OR REPLACE FUNCTION {schema}.keep_house(days integer, fresh text, waits boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now bigint := {schema}.now_ms();
    today integer := now / 86400000;
    cleaned bigint;
    part text;
BEGIN
    IF waits THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}.keep_house', 0));
    ELSIF NOT pg_try_advisory_xact_lock(hashtextextended('{schema}.keep_house', 0)) THEN
        RETURN;
    END IF;
    PERFORM set_config('lock_timeout', '1s', true);
    FOR day IN today - 1 .. today + 2 LOOP
        part := 'entry_' || day;
        IF to_regclass('{schema}.' || part) IS NULL THEN
            EXECUTE format('CREATE TABLE {schema}.%I (LIKE {schema}.entry)', part);
            EXECUTE format(
                'ALTER TABLE {schema}.entry ATTACH PARTITION {schema}.%I FOR VALUES FROM (%s) TO (%s)',
                part, day * 86400000::bigint, (day + 1) * 86400000::bigint
            );
        END IF;
    END LOOP;
    SELECT value::bigint INTO cleaned FROM {schema}.setting WHERE name = 'cleaned';
    IF abs(now - cleaned) < 50000 THEN
        RETURN;
    END IF;
    INSERT INTO {schema}.setting VALUES ('cleaned', now)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    -- publishers wait behind it
    PERFORM set_config('lock_timeout', '200ms', true);
    FOR part IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = '{schema}.entry'::regclass
            AND substring(c.relname FROM 'entry_(\d+)')::integer < today - days
    LOOP
        BEGIN
            EXECUTE format('DROP TABLE {schema}.%I', part);
        EXCEPTION WHEN lock_not_available THEN
            EXIT;  -- a backup reads it: the next time
        END;
    END LOOP;
    DELETE FROM {schema}.letter WHERE at_us <= {schema}.now_us() - 60000000;
    -- not all at once: a statement may take seconds
    DELETE FROM {schema}.once WHERE digest IN (
        SELECT digest FROM {schema}.once WHERE expires <= now LIMIT 50000 FOR UPDATE SKIP LOCKED
    );
    DELETE FROM {schema}.stream WHERE channel IN (
        SELECT channel FROM {schema}.stream WHERE expires <= now LIMIT 50000 FOR UPDATE SKIP LOCKED
    );
    IF FOUND THEN
        -- a channel that begins again without a bound must not look like the one that was forgotten
        UPDATE {schema}.setting SET value = fresh WHERE name = 'epoch';
    END IF;
END $$;

-- Keep letters for a minute and return their numbers, which grow in the order of commits. A crash
-- of the server loses letters, so nothing waits for the disk.
CREATE OR REPLACE FUNCTION {schema}.post(rings bytea[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM pg_advisory_xact_lock(hashtextextended('{schema}.letter', 0));
    RETURN QUERY INSERT INTO {schema}.letter (at_us, ring)
        SELECT {schema}.now_us(), r FROM unnest(rings) WITH ORDINALITY AS u(r, n) ORDER BY n
        RETURNING id;
END $$;
