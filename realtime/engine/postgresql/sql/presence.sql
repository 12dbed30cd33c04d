-- Presence: the clients in each channel, until their entries expire.

CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.presence (
    channel bytea NOT NULL,
    client text NOT NULL,
    info bytea NOT NULL,
    expires bigint NOT NULL,
    PRIMARY KEY (channel, client)
) WITH (fillfactor = 70);
