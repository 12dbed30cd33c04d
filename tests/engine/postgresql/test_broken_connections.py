"""Connections to PostgreSQL are cut while lists change: in the end all of it is right."""

from __future__ import annotations

import asyncio
import random

import pytest

from realtime.engine.lists import Kind
from realtime.engine.postgresql.schema import quoted
from realtime.errors import EngineUnavailable, NoReply
from realtime.protocol.messages import ClientInfo
from tests.engine.bench import comes_true
from tests.engine.postgresql_bench import PostgreSQLBench, announces

TIMEOUT = 5.0

_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@pytest.mark.parametrize("seed", range(3))
async def test_names_and_reports_are_right_in_the_end(
    postgresql: PostgreSQLBench, seed: int
) -> None:
    bench, chance = postgresql, random.Random(seed)
    lists, names = bench.engine.lists, [f"n{number}" for number in range(20)]
    listed: set[str] = set()
    for step in range(200):
        name = chance.choice(names)
        if name in listed:
            listed.remove(name)
            lists.discard(Kind.CHANNELS, name)
        else:
            listed.add(name)
            lists.add(Kind.CHANNELS, name)
        if step % 20 == 0:
            bench.execute(_CUT)
            await announces(bench)
        await asyncio.sleep(0.001)

    await comes_true(lambda: announces(bench))
    await bench.idle()
    await comes_true(lambda: announces(bench))

    async def are_listed() -> bool:
        try:
            return sorted(await bench.channels()) == sorted(listed)
        except EngineUnavailable:  # the last cut
            return False

    await comes_true(are_listed)
    for name in names:
        reports = bench.receiver.occupied.count(name) - bench.receiver.vacated.count(name)
        assert reports == (name in listed)


async def test_every_call_ends_when_connections_are_cut(postgresql: PostgreSQLBench) -> None:
    bench = postgresql
    ended: list[BaseException | None] = []

    async def call(number: int) -> None:
        try:
            await bench.presence.add("channel", [ClientInfo("7", f"C{number}")], 60)
            await bench.cluster.claim(f"name{number}", "N1", 60)
            await bench.limits.blocked()
        except EngineUnavailable as error:
            ended.append(error)
        else:
            ended.append(None)

    async def cut() -> None:
        for _ in range(10):
            await asyncio.to_thread(bench.execute, _CUT)
            await asyncio.sleep(0.01)

    await asyncio.gather(cut(), *(call(number) for number in range(200)))

    assert len(ended) == 200
    assert any(ended), "no call met a cut"
    await call(200)
    await comes_true(lambda: announces(bench))


async def test_publisher_whose_statement_is_under_way_learns_that_the_engine_stops(
    postgresql: PostgreSQLBench,
) -> None:
    bench = postgresql
    await bench.publish("channel", 1)
    with bench.server.connect() as connection:
        lock = "SELECT FROM {schema}.stream FOR UPDATE".replace("{schema}", quoted(bench.prefix))
        connection.execute(lock)
        publishing = asyncio.create_task(bench.publish("channel", 2))
        await comes_true(lambda: waits_for_a_lock(bench))

        await bench.engine.stop()

        with pytest.raises(NoReply):
            await asyncio.wait_for(publishing, TIMEOUT)


async def waits_for_a_lock(bench: PostgreSQLBench) -> bool:
    return bool(bench.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
