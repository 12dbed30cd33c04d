"""Presence of a node in PostgreSQL: what comes while a statement is under way shares the next."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from realtime.engine.postgresql.database import Address, LoopDatabase, Row
from realtime.engine.postgresql.presence import MAX_BATCH, PostgreSQLNodePresence
from realtime.errors import EngineUnavailable, NoReply
from realtime.protocol.messages import ClientInfo
from tests.engine.postgresql_bench import PostgreSQLBench


class CountingDatabase(LoopDatabase):
    """Counts statements, and may fail."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.statements = 0
        self.is_away = False

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        self.statements += 1
        if self.is_away:
            raise EngineUnavailable("away")
        return await super().fetch(query, *arguments)


@pytest.fixture
async def database(postgresql: PostgreSQLBench) -> Any:
    database = CountingDatabase(postgresql.address)
    yield database
    await database.close()


@pytest.fixture
async def presence(database: CountingDatabase) -> Any:
    presence = PostgreSQLNodePresence(database)
    yield presence
    await presence.close()


async def test_channels_refreshed_together_share_statements(
    database: CountingDatabase, presence: PostgreSQLNodePresence
) -> None:
    await asyncio.gather(
        *(presence.add(f"c{n}", [ClientInfo("7", f"C{n}")], 60) for n in range(2 * MAX_BATCH))
    )
    assert database.statements <= 3
    assert set(await presence.get("c700")) == {"C700"}


async def test_last_call_of_many_decides(presence: PostgreSQLNodePresence) -> None:
    chance = random.Random(3)
    there: dict[str, bool] = {}
    calls = []
    for _ in range(300):
        client = f"C{chance.randrange(10)}"
        there[client] = chance.random() < 0.5
        if there[client]:
            calls.append(presence.add("channel", [ClientInfo("7", client)], 60))
        else:
            calls.append(presence.remove("channel", client))
        if chance.random() < 0.1:
            calls.append(asyncio.sleep(0.001))

    await asyncio.gather(*calls)

    assert set(await presence.get("channel")) == {
        client for client, is_in in there.items() if is_in
    }


async def test_failure_is_that_of_the_callers_who_share_the_statement(
    database: CountingDatabase, presence: PostgreSQLNodePresence
) -> None:
    database.is_away = True
    failed = await asyncio.gather(
        *(presence.add("channel", [ClientInfo("7", f"C{n}")], 60) for n in range(3)),
        return_exceptions=True,
    )
    assert [type(error) for error in failed] == [EngineUnavailable] * 3

    database.is_away = False
    await presence.add("channel", [ClientInfo("7", "C9")], 60)
    assert set(await presence.get("channel")) == {"C9"}


async def test_caller_that_gives_up_keeps_no_other_waiting(
    presence: PostgreSQLNodePresence,
) -> None:
    given_up = asyncio.ensure_future(presence.add("channel", [ClientInfo("7", "C1")], 60))
    await asyncio.sleep(0)
    given_up.cancel()
    await presence.add("channel", [ClientInfo("7", "C2")], 60)
    assert "C2" in await presence.get("channel")


async def test_callers_are_released_when_the_engine_stops(
    database: CountingDatabase, presence: PostgreSQLNodePresence
) -> None:
    calls = [
        asyncio.ensure_future(presence.add("channel", [ClientInfo("7", f"C{n}")], 60))
        for n in range(3)
    ]
    while not database.statements:
        await asyncio.sleep(0)
    late = asyncio.ensure_future(presence.remove("channel", "C1"))
    await asyncio.sleep(0)

    await presence.close()

    async with asyncio.timeout(60):
        ended = await asyncio.gather(*calls, late, return_exceptions=True)
    assert [type(each) for each in ended] == [NoReply] * 3 + [EngineUnavailable]
