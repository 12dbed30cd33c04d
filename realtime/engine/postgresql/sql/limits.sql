-- Shared limits: blocked users, debts of users, and places of their connections.
--
-- Blocks outlive the server, because a user who was shut out stays out. The others may die with it.

CREATE TABLE IF NOT EXISTS {schema}.blocked (
    name bytea PRIMARY KEY,  -- a digest of the user
    entry bytea NOT NULL,
    ends double precision NOT NULL  -- Unix seconds
);

CREATE TABLE IF NOT EXISTS {schema}.block_list (
    is_it boolean PRIMARY KEY DEFAULT true CHECK (is_it),
    made bigint NOT NULL,  -- Unix us
    changed bigint NOT NULL
);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.debt (
    name bytea PRIMARY KEY,  -- a digest of the rate and the user
    ends double precision NOT NULL  -- Unix seconds
) WITH (fillfactor = 70);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.place (
    name bytea NOT NULL,  -- a digest of the user
    node text NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (name, node)
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS place_by_node ON {schema}.place (node);

-- Block users until a time, unless too many are blocked; or unblock them.
--
-- One after the other, under a lock: two callers must not both take the last place. A change has a
-- higher number than the one before, also where the clock of another server is behind.
--
-- ends     Unix seconds; 0 unblocks
-- most     how many users may be blocked
-- returns  how many of them are blocked, and the version of the list: null if there was never one
CREATE OR REPLACE FUNCTION {schema}.block_users(
    names bytea[], entries bytea[], until double precision[], most bigint,
    OUT number bigint, OUT made bigint, OUT changed bigint
) LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint;
BEGIN
    PERFORM pg_advisory_xact_lock('{schema}.blocked'::regclass::oid::bigint::bit(32)::int, 0);
    now_us := {schema}.now_ms() * 1000;
    DELETE FROM {schema}.blocked b WHERE b.ends * 1000000 <= now_us;
    DELETE FROM {schema}.blocked b USING unnest(names, until) AS given (name, ends)
    WHERE given.ends = 0 AND b.name = given.name;
    WITH given AS (
        SELECT g.name, g.entry, g.ends, b.name IS NULL AS is_new,
            row_number() OVER (PARTITION BY b.name IS NULL ORDER BY g.place) AS rank
        FROM unnest(names, entries, until) WITH ORDINALITY AS g (name, entry, ends, place)
        LEFT JOIN {schema}.blocked b ON b.name = g.name
        WHERE g.ends > 0
    ), written AS (
        INSERT INTO {schema}.blocked AS b (name, entry, ends)
        SELECT g.name, g.entry, g.ends FROM given g
        WHERE NOT g.is_new OR g.rank <= most - (SELECT count(*) FROM {schema}.blocked)
        ON CONFLICT (name) DO UPDATE SET entry = excluded.entry, ends = excluded.ends
        RETURNING 1
    )
    SELECT count(*) INTO number FROM written;
    IF number > 0 OR 0 = ANY (until) THEN
        INSERT INTO {schema}.block_list AS l (made, changed) VALUES (now_us, now_us)
        ON CONFLICT (is_it) DO UPDATE SET changed = greatest(excluded.changed, l.changed + 1);
    END IF;
    SELECT l.made, l.changed INTO made, changed FROM {schema}.block_list l;
END
$$;

-- Return the blocked users with the version of the list, unless it is the known one.
--
-- One statement, because a change in between would belong to another version.
--
-- returns  version and entries; entries are null if the version is known
CREATE OR REPLACE FUNCTION {schema}.blocked_users(
    known_made bigint, known_changed bigint,
    OUT made bigint, OUT changed bigint, OUT entries bytea[]
) LANGUAGE sql STABLE AS $$
    SELECT l.made, l.changed,
        CASE WHEN (known_made, known_changed) IS DISTINCT FROM (l.made, l.changed) THEN ARRAY(
            SELECT b.entry FROM {schema}.blocked b
            WHERE b.ends * 1000 > (SELECT {schema}.now_ms())
        ) END
    FROM (SELECT 0) AS one LEFT JOIN LATERAL (
        SELECT b.made, b.changed FROM {schema}.block_list b
    ) AS l ON true
$$;

-- Add what users took at one node to what they took at all of them.
--
-- A debt is the time until a user could take a whole burst again. Rows are written in the order of
-- their keys, so that two nodes never wait for each other.
--
-- elapsed  seconds in which it was taken
-- returns  seconds that each debt lasts now
CREATE OR REPLACE FUNCTION {schema}.add_debts(
    names bytea[], taken double precision[], most double precision[], elapsed double precision
) RETURNS double precision[] LANGUAGE plpgsql AS $$
DECLARE
    now_s double precision := {schema}.now_ms() / 1000.0;
    lasting double precision[] := array_fill(0.0::double precision, ARRAY[cardinality(names)]);
    given record;
    debt_end double precision;
BEGIN
    FOR given IN
        SELECT g.* FROM unnest(names, taken, most) WITH ORDINALITY AS g (name, seconds, most, place)
        ORDER BY g.name, g.place
    LOOP
        INSERT INTO {schema}.debt AS d (name, ends)
        VALUES (given.name, least(now_s - elapsed + given.seconds, now_s + given.most))
        ON CONFLICT (name) DO UPDATE
        SET ends = least(greatest(d.ends, now_s - elapsed) + given.seconds, now_s + given.most)
        RETURNING d.ends INTO debt_end;
        lasting[given.place] := greatest(0.0, debt_end - now_s);
    END LOOP;
    RETURN lasting;
END
$$;

-- Give connections of users at one node a place, as far as a limit for all nodes leaves room.
--
-- One after the other, under a lock: of two nodes that ask for the last place of a user one gets
-- it. A node keeps the places that it has, and they end when its heartbeats are overdue, by the
-- same clock: others may have got them by then.
--
-- most     places of a user at all nodes
-- clears   whether to give up all places of this node before
-- returns  users with places here, places here, places elsewhere; nothing if the heartbeats of
--          this node are overdue, so that other nodes would not count its places
CREATE OR REPLACE FUNCTION {schema}.place_connections(
    of_node text, names bytea[], connections bigint[], most bigint, clears boolean,
    OUT users bigint, OUT here bigint[], OUT elsewhere bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    own record;
BEGIN
    PERFORM pg_advisory_xact_lock('{schema}.place'::regclass::oid::bigint::bit(32)::int, 0);
    SELECT n.alive_until > {schema}.now_ms() AS is_alive,
        coalesce(n.places_until > {schema}.now_ms(), false) AS has_places
    INTO own FROM {schema}.node n WHERE n.uid = of_node FOR UPDATE;
    IF clears OR NOT coalesce(own.is_alive AND own.has_places, false) THEN
        DELETE FROM {schema}.place WHERE node = of_node;
    END IF;
    IF NOT coalesce(own.is_alive, false) THEN
        RETURN;
    END IF;
    UPDATE {schema}.node SET places_until = alive_until WHERE uid = of_node;
    WITH given AS (
        SELECT g.name, g.place, g.connections,
            coalesce((
                SELECT p.number FROM {schema}.place p WHERE p.name = g.name AND p.node = of_node
            ), 0) AS before,
            (
                SELECT coalesce(sum(p.number), 0)::bigint
                FROM {schema}.place p JOIN {schema}.node n ON n.uid = p.node
                WHERE p.name = g.name AND p.node <> of_node
                    AND n.alive_until > {schema}.now_ms() AND n.places_until > {schema}.now_ms()
            ) AS elsewhere
        FROM unnest(names, connections) WITH ORDINALITY AS g (name, connections, place)
    ), placed AS (
        SELECT g.name, g.place, g.elsewhere,
            least(g.connections, greatest(0, g.before, most - g.elsewhere)) AS number
        FROM given g
    ), gone AS (
        DELETE FROM {schema}.place p USING placed WHERE placed.number = 0
            AND p.name = placed.name AND p.node = of_node
    ), written AS (
        INSERT INTO {schema}.place (name, node, number)
        SELECT placed.name, of_node, placed.number FROM placed WHERE placed.number > 0
        ON CONFLICT (name, node) DO UPDATE SET number = excluded.number
    )
    SELECT coalesce(array_agg(placed.number ORDER BY placed.place), '{}'),
        coalesce(array_agg(placed.elsewhere ORDER BY placed.place), '{}')
    INTO here, elsewhere FROM placed;
    SELECT count(*) INTO users FROM {schema}.place p WHERE p.node = of_node;
END
$$;
