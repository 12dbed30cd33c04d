-- Remove some rows that have expired. One node calls it again and again; see cluster.py.
--
-- Rows that others are changing are left to the next call. Debts are kept for as long as a node may
-- be late to tell of what was taken.
--
-- most     rows to remove from each table
-- returns  how many were removed from the table with the most of them
CREATE OR REPLACE FUNCTION {schema}.remove_expired(most bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    from_table text;
    removed bigint;
    largest bigint := 0;
BEGIN
    FOREACH from_table IN ARRAY ARRAY['presence', 'survey', 'owner', 'swept', 'node'] LOOP
        EXECUTE format(
            'DELETE FROM {schema}.%1$I WHERE ctid = ANY (ARRAY('
            'SELECT ctid FROM {schema}.%1$I WHERE expires <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))',
            from_table) USING {schema}.now_ms(), most;
        GET DIAGNOSTICS removed = ROW_COUNT;
        largest := greatest(largest, removed);
    END LOOP;
    DELETE FROM {schema}.debt WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.debt WHERE ends < {schema}.now_ms() / 1000 - 3600
        LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    largest := greatest(largest, removed);
    DELETE FROM {schema}.place WHERE ctid = ANY (ARRAY(
        SELECT p.ctid FROM {schema}.place p
        WHERE NOT EXISTS (SELECT FROM {schema}.node n WHERE n.uid = p.node)
        LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN greatest(largest, removed);
END
$$;
