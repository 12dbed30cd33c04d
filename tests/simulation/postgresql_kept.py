"""What a service keeps in PostgreSQL at this moment, for the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime.cluster import dead_nodes
from realtime.engine.lists import Kind
from realtime.engine.postgresql.cluster import CLEANER
from realtime.engine.postgresql.streams import digest, key
from tests.simulation.postgresql_database import Transaction
from tests.simulation.postgresql_server import PostgreSQL

if TYPE_CHECKING:
    from tests.simulation.postgresql_streams import Stream


def stream(server: PostgreSQL, channel: str) -> tuple[str, int, int] | None:
    """Return epoch, first offset and top of a stream; None if it has no epoch yet."""
    tables = server.database.tables
    row: Stream | None = tables["stream"].get(key(channel))
    now = server.clock() * 1000
    timeline = Transaction(server.database).timeline
    if row is None or not row.lives(round(now)):
        epoch = tables["setting"].get("epoch")
        return None if epoch is None else (epoch + timeline, 1, 0)
    return row.epoch + timeline, (row.floor if row.ends > now else row.top) + 1, row.top


def present(server: PostgreSQL, channel: str) -> set[str]:
    """Return the clients in a channel."""
    now = server.clock() * 1000
    rows = server.database.tables["presence"].items()
    return {client for (name, client), (_, ends) in rows if name == key(channel) and ends > now}


def nodes(server: PostgreSQL) -> set[str]:
    """Return the nodes that are listed."""
    now = server.clock() * 1000
    return {uid for uid, row in server.database.tables["node"].items() if row.alive_until > now}


def channels(server: PostgreSQL, uids: set[str]) -> set[bytes]:
    """Return the channels that nodes list."""
    listed = server.database.tables["listed"]
    return {name for kind, name, node in listed if kind == Kind.CHANNELS.value and node in uids}


def claims(server: PostgreSQL) -> dict[bytes, str]:
    """Return the claims on sessions, and the nodes that have them."""
    now, others = server.clock() * 1000, {claim(CLEANER), claim(dead_nodes.CLAIM)}
    rows = server.database.tables["owner"].items()
    return {name: node for name, (node, ends) in rows if ends > now and name not in others}


def claim(name: str) -> bytes:
    """Return how a claim is named."""
    return digest(name)
