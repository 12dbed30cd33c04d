"""Tables of an older version get the present functions while nodes work, and nothing is lost.

The nodes publish and ask for tops as older ones do, which know of no maps and no timeline.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing, Published
from realtime.engine.lists import Kind
from realtime.engine.postgresql import delivery, streams
from realtime.engine.postgresql.schema import create, quoted
from realtime.protocol.messages import ClientInfo, Publication
from tests.chaos.old_version import extract
from tests.database_server import DatabaseServer
from tests.engine.bench import NODE, NODE_LIFETIME, SECOND_NODE
from tests.engine.postgresql_bench import postgresql_bench
from tests.unit.parts import data, eventually

FIRST = "8b01d77a8947940d003163c240975703b1ffed1b"
"""The commit with the oldest tables that may be in use."""
SQL = "realtime/engine/postgresql/sql"
KEPT = ChannelOptions(history_size=100_000, history_lifetime=600)
CHANNELS = ("a", "b", "c")
OLD_PUBLISH = (
    "SELECT p.*, NULL::text FROM {schema}.publish(%s::bytea[], %s::bytea[], %s::bytea[],"
    " %s::integer[], %s::bigint[], %s::bigint[], %s::text[], %s::jsonb[]) AS p WHERE NOT %s"
)
OLD_TOPS = delivery._TOPS.replace(" || (SELECT {schema}.timeline())", "")


def create_old(server: DatabaseServer, schema: str, tree: Path) -> None:
    """Create the tables of the first version, in the order in which it did."""
    extract(tree, FIRST, SQL)
    files = sorted((tree / SQL).glob("*.sql"), key=lambda path: (path.stem != "ground", path.stem))
    with server.connect() as connection:
        for file in files:
            connection.execute(file.read_text().replace("{schema}", quoted(schema)))


async def test_upgrade_beside_nodes_at_work_loses_nothing(
    postgresql_server: DatabaseServer,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert delivery._TOPS != OLD_TOPS
    monkeypatch.setattr(delivery, "_TOPS", OLD_TOPS)
    monkeypatch.setattr(streams, "_PUBLISH", OLD_PUBLISH)
    create_old(postgresql_server, unique, tmp_path)
    published = dict.fromkeys(CHANNELS, 0)
    stops = asyncio.Event()
    end = time.time() + 1000
    info = ClientInfo("7", "C1")

    def upgrade() -> None:
        with postgresql_server.connect() as connection:
            create(connection, unique)
            time.sleep(0.3)  # a migration goes on before it commits

    async def publish(channel: str) -> None:
        while not stops.is_set():
            outgoing = Outgoing(channel, Publication(data(str(published[channel]))), KEPT)
            assert isinstance(await one.broker.publish(outgoing), Published)
            published[channel] += 1

    async with (
        postgresql_bench(postgresql_server, unique) as one,
        postgresql_bench(postgresql_server, unique, SECOND_NODE) as other,
    ):
        for channel in CHANNELS:
            await other.broker.subscribe(channel)
        await one.presence.add("a", [info], 600)
        await one.limits.block({"8": end})
        one.engine.lists.add(Kind.USERS, "7")
        publishing = [asyncio.create_task(publish(channel)) for channel in CHANNELS]
        await eventually(lambda: min(published.values()) > 20)

        for _ in range(3):
            await asyncio.to_thread(upgrade)
            await one.cluster.announce(NODE, NODE_LIFETIME)

        before = min(published.values())
        await eventually(lambda: min(published.values()) > before + 20)
        stops.set()
        await asyncio.gather(*publishing)
        for channel, number in published.items():
            await eventually(lambda: len(other.values(channel)) >= number)  # noqa: B023
            assert other.values(channel) == list(range(number))
            assert await one.kept_values(channel) == list(range(number))
        assert dict(await other.presence.get("a")) == {"C1": info}
        assert await other.engine.lists.names(Kind.USERS) == ["7"]
        blocked = await other.limits.blocked()
        assert blocked is not None
        assert blocked.ends == {"8": end}
