-- Lists: what there is at each node. A row for each name and node; who went offline; and which
-- nodes have lists.
--
-- Changes of lists happen one after the other, under one advisory lock. So of two nodes that add a
-- name exactly one is the first, and of two that remove it exactly one is the last. No table is
-- flushed to disk and no client is waited for below the lock: it is held for milliseconds.
--
-- LIMIT 1 makes the planner look up each name in an index. Without it, it may read all rows as long
-- as it has no statistics of them.

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.listed (
    kind text NOT NULL,
    name bytea NOT NULL,
    node text NOT NULL,
    PRIMARY KEY (kind, name, node)
);

-- With the name: the planner may take it for a row whose kind and node are known, too.
CREATE INDEX IF NOT EXISTS listed_by_node ON {schema}.listed (node, kind, name);

-- The lists of a node count until they are swept, which others do from `overdue` on.
CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.listing (
    node text PRIMARY KEY,
    overdue bigint NOT NULL
) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.swept (
    node text PRIMARY KEY,
    expires bigint NOT NULL
);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.last_sweep (
    is_it boolean PRIMARY KEY DEFAULT true CHECK (is_it),
    attempt text NOT NULL,
    kind text NOT NULL,
    names bytea[] NOT NULL
);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.seen (
    name bytea PRIMARY KEY,
    at bigint NOT NULL  -- Unix ms
);

CREATE OR REPLACE FUNCTION {schema}.lock_lists()
RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock('{schema}.listed'::regclass::oid::bigint::bit(32)::int, 0)
$$;

-- Keep the lists of a node, which others sweep after some ms without another call.
--
-- returns  whether they were swept
CREATE OR REPLACE FUNCTION {schema}.renew_lists(of_node text, lifetime bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.listing (node, overdue)
    VALUES (of_node, {schema}.now_ms() + lifetime)
    ON CONFLICT (node) DO UPDATE SET overdue = excluded.overdue;
    RETURN EXISTS (SELECT FROM {schema}.swept WHERE node = of_node);
END
$$;

-- Remove the lists of a node that stops.
--
-- held     ms for which its users in channels are kept, and then swept; null: they are not kept
CREATE OR REPLACE FUNCTION {schema}.withdraw_lists(of_node text, held bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {schema}.lock_lists();
    DELETE FROM {schema}.listed WHERE node = of_node AND (held IS NULL OR kind <> 'channel_users');
    IF held IS NULL THEN
        DELETE FROM {schema}.listing WHERE node = of_node;
    ELSE
        PERFORM {schema}.renew_lists(of_node, held);
    END IF;
END
$$;

-- Note when users went offline, unless too many are noted.
CREATE OR REPLACE FUNCTION {schema}.note_seen(names bytea[], at_ms bigint, most bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(names) > 0 AND (
        SELECT count(*) FROM (SELECT FROM {schema}.seen LIMIT most) AS noted
    ) < most THEN
        INSERT INTO {schema}.seen (name, at) SELECT DISTINCT each, at_ms FROM unnest(names) AS each
        ON CONFLICT (name) DO UPDATE SET at = excluded.at;
    END IF;
END
$$;

-- Add names to a list of a node, or remove some, and return those that no other node lists.
--
-- lifetime    ms until others sweep them, if the node has sent no heartbeat yet
-- most_seen   users of whom may be noted when they went offline; null: nothing is noted
-- returns     added names and removed names, without those that another node lists; nothing if
--             this node was swept: it must know that before it changes its lists
CREATE OR REPLACE FUNCTION {schema}.list_names(
    of_node text, of_kind text, added bytea[], removed bytea[], lifetime bigint,
    most_seen bigint, OUT first_names bytea[], OUT last_names bytea[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {schema}.lock_lists();
    IF EXISTS (SELECT FROM {schema}.swept WHERE node = of_node) THEN
        RETURN;
    END IF;
    INSERT INTO {schema}.listing (node, overdue)
    VALUES (of_node, {schema}.now_ms() + lifetime) ON CONFLICT DO NOTHING;
    INSERT INTO {schema}.listed (kind, name, node)
    SELECT of_kind, each, of_node FROM unnest(added) AS each ON CONFLICT DO NOTHING;
    DELETE FROM {schema}.listed WHERE ctid = ANY (ARRAY(
        SELECT l.ctid FROM unnest(removed) AS each CROSS JOIN LATERAL (
            SELECT ctid FROM {schema}.listed
            WHERE kind = of_kind AND name = each AND node = of_node LIMIT 1
        ) AS l
    ));
    first_names := {schema}.unlisted(of_kind, added, of_node);
    last_names := {schema}.unlisted(of_kind, removed, of_node);
    IF most_seen IS NOT NULL THEN
        PERFORM {schema}.note_seen(last_names, {schema}.now_ms(), most_seen);
    END IF;
END
$$;

-- Return the names that no other node lists.
CREATE OR REPLACE FUNCTION {schema}.unlisted(of_kind text, names bytea[], of_node text)
RETURNS bytea[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(each), '{}') FROM unnest(names) AS each LEFT JOIN LATERAL (
        SELECT true AS is_listed FROM {schema}.listed
        WHERE kind = of_kind AND name = each AND node <> of_node LIMIT 1
    ) AS l ON true
    WHERE l.is_listed IS NULL
$$;

-- Remove all names in a list of a node.
CREATE OR REPLACE FUNCTION {schema}.clear_list(of_node text, of_kind text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM {schema}.lock_lists();
    DELETE FROM {schema}.listed WHERE node = of_node AND kind = of_kind;
END
$$;

-- Take names out of the lists of a node that died, and return those that no other node lists.
--
-- of_attempt  the same one returns the same again
-- most        how many names to take
-- remembered  ms for which it is known that a node was swept
-- most_seen   as for list_names; users were seen last while the node was not overdue
-- returns     kind and names; nothing if there is nothing left
--
-- The lists of another node that died count until they are swept, too: the last of them tells.
CREATE OR REPLACE FUNCTION {schema}.sweep(
    of_attempt text, most integer, remembered bigint, most_seen bigint,
    OUT of_kind text, OUT names bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    dead record;
    taken bytea[];
BEGIN
    PERFORM {schema}.lock_lists();
    SELECT l.kind, l.names INTO of_kind, names FROM {schema}.last_sweep l
    WHERE l.attempt = of_attempt;
    IF FOUND THEN
        RETURN;
    END IF;
    FOR dead IN
        SELECT l.node, l.overdue FROM {schema}.listing l WHERE l.overdue <= {schema}.now_ms()
    LOOP
        INSERT INTO {schema}.swept (node, expires)
        VALUES (dead.node, {schema}.now_ms() + remembered)
        ON CONFLICT (node) DO UPDATE SET expires = excluded.expires;
        -- pages wait for users in channels
        FOREACH of_kind IN ARRAY ARRAY['channel_users', 'users', 'channels'] LOOP
            WITH gone AS (
                DELETE FROM {schema}.listed WHERE ctid = ANY (ARRAY(
                    SELECT l.ctid FROM {schema}.listed l
                    WHERE l.node = dead.node AND l.kind = of_kind LIMIT most
                )) RETURNING name
            )
            SELECT array_agg(name) INTO taken FROM gone;
            CONTINUE WHEN taken IS NULL;
            names := {schema}.unlisted(of_kind, taken, dead.node);
            IF of_kind = 'users' AND most_seen IS NOT NULL THEN
                PERFORM {schema}.note_seen(names, dead.overdue, most_seen);
            END IF;
            INSERT INTO {schema}.last_sweep (attempt, kind, names)
            VALUES (of_attempt, of_kind, names)
            ON CONFLICT (is_it) DO UPDATE
            SET attempt = excluded.attempt, kind = excluded.kind, names = excluded.names;
            RETURN;
        END LOOP;
        -- unless it has sent a heartbeat meanwhile
        DELETE FROM {schema}.listing l WHERE l.node = dead.node AND l.overdue <= {schema}.now_ms();
    END LOOP;
    of_kind := NULL;
END
$$;

