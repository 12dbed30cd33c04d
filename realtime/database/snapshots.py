"""Positions of channels in the snapshot of a transaction of the site.

Publications follow the commit of what they tell of. So a snapshot that lacks a change lacks its
publication, and the tops of streams in the snapshot are exact positions of what it shows. Nothing
is written in the transaction. A channel whose stream is not in the snapshot begins after it: its
position is the beginning of the stream.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import DatabaseError, connections, transaction

from realtime import channel_rules
from realtime.config import site_databases
from realtime.engine.postgresql import schema
from realtime.engine.postgresql.streams import key
from realtime.pages import page_positions
from realtime.server_api.arguments import Position
from realtime.serving import serving

logger = logging.getLogger("realtime.pages")

SNAPSHOTS = ("repeatable read", "serializable")
"""Isolation levels with which all statements of a transaction see the same rows."""

_TOPS = (
    "SELECT channel, top, epoch || (SELECT {schema}.timeline()) FROM {schema}.stream"
    " WHERE channel = ANY(%s::bytea[]) AND (expires IS NULL OR expires > {schema}.now_ms())"
)


def positions(channels: Sequence[str]) -> dict[str, Position | None] | None:
    """Return the positions that channels have in the snapshot of the transaction under way.

    Returns:
        None: there is no transaction in the database of the engine, or one without a snapshot.

    Raises:
        NotAvailable, NamespaceNotFound: as `realtime.pages.positions`.
    """
    config = serving.config()
    database = site_databases.engine_database(config)
    if database is None or not connections[database].in_atomic_block:
        return None
    names = {key(channel): channel for channel in channels if page_positions.check(channel)}
    query = _TOPS.replace("{schema}", schema.quoted(config.database_schema))
    try:
        with connections[database].cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            if cursor.fetchone()[0] not in SNAPSHOTS:
                return None
        # a savepoint: after an error the caller goes on
        with transaction.atomic(using=database), connections[database].cursor() as cursor:
            cursor.execute(query, [[*names]])
            rows = cursor.fetchall()
    except DatabaseError as error:
        logger.warning("A page has positions of a time, and not of its snapshot: %s", error)
        return None
    tops = {names[bytes(name)]: Position(top, epoch) for name, top, epoch in rows}
    # those that expire are kept for longer by a connection of the engine
    others = [
        channel
        for channel in names.values()
        if channel not in tops
        or config.database_history_meta_ttl
        or channel_rules.meta_ttl(config, channel)
    ]
    found: dict[str, Position | None] = dict.fromkeys(channels)
    for channel, begun in page_positions.read(others, None).items():
        found[channel] = begun and Position(0, begun.epoch)
    return found | tops
