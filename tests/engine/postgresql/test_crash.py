"""PostgreSQL crashes: what may die with it is written again, and blocks are still there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest

from realtime.engine.lists import Kind
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, StreamPosition
from tests.database_server import DatabaseServer, QuickPostgres
from tests.engine.bench import NODE, NODE_LIFETIME, PLAIN, comes_true
from tests.engine.map_bench import make
from tests.engine.postgresql_bench import PostgreSQLBench, announces, postgresql_bench


@pytest.fixture
async def own(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> AsyncIterator[PostgreSQLBench]:
    """An engine over a PostgreSQL of its own."""
    server = start_database(QuickPostgres)
    async with postgresql_bench(server) as bench:
        yield bench
    server.kill()


async def test_node_writes_again_what_died_and_reports_nothing_twice(own: PostgreSQLBench) -> None:
    end = time.time() + 1000
    await own.broker.subscribe("channel")
    own.engine.lists.add(Kind.USERS, "7")
    await own.idle()
    await own.limits.block({"8": end})
    await own.presence.add("channel", [ClientInfo("7", "C1")], 60)

    own.server.restart()
    await comes_true(lambda: announces(own))
    lost = dict(await own.presence.get("channel"))

    assert lost == {}
    assert await own.nodes() == [NODE]
    assert await own.channels() == ["channel"]
    assert await own.engine.lists.names(Kind.USERS) == ["7"]
    assert own.receiver.occupied == ["channel"]
    assert own.receiver.firsts[Kind.USERS] == ["7"]
    assert own.receiver.lasts[Kind.USERS] == []
    blocked = await own.limits.blocked()
    assert blocked is not None
    assert blocked.ends == {"8": end}


async def test_node_that_polls_gets_letters_after_a_crash_that_no_poll_met(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> None:
    server = start_database(QuickPostgres)
    async with postgresql_bench(server, poll=0.05) as bench:
        await bench.broker.subscribe("channel")
        letters = (
            "INSERT INTO {schema}.letter (at_us, ring) SELECT 0, %s FROM generate_series(1, 999)"
        )
        bench.execute(letters, b'[0,"",[]]')
        await bench.publish("channel", 1, options=PLAIN)
        await bench.received("channel", 1)

        server.restart()  # the event loop waits for it

        async def arrives() -> bool:
            with suppress(EngineUnavailable):
                await bench.publish("channel", 2, options=PLAIN)
            return 2 in bench.values("channel")

        await comes_true(arrives)
        assert len(bench.receiver.interruptions) == len(bench.receiver.resumptions) == 1
    server.kill()


async def test_entries_of_a_map_outlive_a_crash(own: PostgreSQLBench) -> None:
    for key in ("a", "b"):
        await make(own, "board", key, 1)
    before = await own.maps.page("board")

    own.server.restart()
    await comes_true(lambda: announces(own))

    assert await own.maps.page("board") == before
    third = await make(own, "board", "a", 2)
    assert before.position is not None
    assert third.position == StreamPosition(3, before.position.epoch)


async def test_everything_fails_closed_while_postgresql_is_away(own: PostgreSQLBench) -> None:
    own.server.kill()
    calls = [
        own.presence.add("channel", [ClientInfo("7", "C1")], 60),
        own.presence.remove("channel", "C1"),
        own.presence.get("channel"),
        own.cluster.announce(NODE, NODE_LIFETIME),
        own.cluster.statuses(),
        own.cluster.answer("survey", b""),
        own.cluster.answers("survey", 0),
        own.cluster.claim("name", "N1", 5),
        own.cluster.owner("name"),
        own.cluster.round_trip(),
        own.engine.lists.listed(Kind.USERS, ["7"]),
        own.engine.lists.names(Kind.USERS),
        own.engine.lists.size(Kind.USERS),
        own.engine.lists.sweep("attempt"),
        own.limits.block({"7": 0}),
        own.limits.blocked(),
        own.limits.add_debts([], 0),
        own.limits.place_connections("N1", {}, 5),
        own.last_seen.users(5),
        own.last_seen.at("7"),
        own.last_seen.forget({}),
        own.maps.page("board"),
        own.maps.get("board", "a"),
        own.maps.due(1),
        make(own, "board", "a", 1),
    ]
    for call in calls:
        with pytest.raises(EngineUnavailable):
            await call
