-- The cluster: nodes, surveys and claims. All of it may die with the server: heartbeats write the
-- nodes again, and claims are renewed.

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.node (
    uid text PRIMARY KEY,
    info bytea NOT NULL,
    alive_until bigint NOT NULL,
    places_until bigint,  -- see limits.sql
    expires bigint NOT NULL
) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.survey (
    id text PRIMARY KEY,
    expires bigint NOT NULL
);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.answer (
    survey text NOT NULL REFERENCES {schema}.survey (id) ON DELETE CASCADE,
    number bigint GENERATED ALWAYS AS IDENTITY,
    answer bytea NOT NULL,
    PRIMARY KEY (survey, number)
);

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.owner (
    name bytea PRIMARY KEY,  -- a digest
    node text NOT NULL,
    expires bigint NOT NULL
) WITH (fillfactor = 50);

-- Record a heartbeat, and keep the lists of the node; see lists.sql.
--
-- lifetime    ms for which the node is alive
-- remembered  ms for which it is known
-- returns     whether its lists were swept
CREATE OR REPLACE FUNCTION {schema}.announce(
    of_node text, of_info bytea, lifetime bigint, remembered bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    overdue bigint := {schema}.now_ms() + lifetime;
BEGIN
    INSERT INTO {schema}.node (uid, info, alive_until, expires)
    VALUES (of_node, of_info, overdue, {schema}.now_ms() + remembered)
    ON CONFLICT (uid) DO UPDATE
    SET info = excluded.info, alive_until = excluded.alive_until, expires = excluded.expires;
    RETURN {schema}.renew_lists(of_node, lifetime);
END
$$;

-- Claim a name for a node, renew the claim, or give it up: with a lifetime of 0 ms.
--
-- The insertion locks the row also where it changes nothing, so it is still there after it.
--
-- returns  the owner, which may be another node
CREATE OR REPLACE FUNCTION {schema}.claim_name(of_name bytea, of_node text, lifetime bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found_node text;
BEGIN
    IF lifetime = 0 THEN
        DELETE FROM {schema}.owner
        WHERE name = of_name AND (node = of_node OR expires <= {schema}.now_ms());
        SELECT node INTO found_node FROM {schema}.owner WHERE name = of_name;
        RETURN coalesce(found_node, of_node);
    END IF;
    INSERT INTO {schema}.owner AS o (name, node, expires)
    VALUES (of_name, of_node, {schema}.now_ms() + lifetime)
    ON CONFLICT (name) DO UPDATE SET node = excluded.node, expires = excluded.expires
    WHERE o.node = excluded.node OR o.expires <= {schema}.now_ms()
    RETURNING node INTO found_node;
    IF found_node IS NULL THEN
        SELECT node INTO STRICT found_node FROM {schema}.owner WHERE name = of_name;
    END IF;
    RETURN found_node;
END
$$;
