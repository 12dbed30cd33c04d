"""A server process dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.chaos.faults import PRESENCE, MakeStage, Stage, untrue
from tests.chaos.harness import OPTIONS, chaos
from tests.chaos.postgresql import ChaosPostgres
from tests.chaos.postgresql_faults import on_postgresql
from tests.chaos.redis_faults import on_redis
from tests.conftest import start_nodes
from tests.database_starting import require_server
from tests.server import Server

STAGES: dict[str, MakeStage[Stage]] = {"redis": on_redis(), "postgresql": on_postgresql()}


@pytest.fixture(params=STAGES)
async def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[list[Server]]:
    """Two nodes over each engine."""
    if request.param == "postgresql":
        require_server(ChaosPostgres)
    async with STAGES[request.param](tmp_path_factory) as stage:
        options = {**OPTIONS, **PRESENCE, **stage.options}
        started = await asyncio.to_thread(start_nodes, tmp_path_factory, 2, **options)
        yield started
        for server in started:
            server.discard()


async def test_clients_of_a_killed_server_recover_everything_at_the_other_one(
    servers: list[Server], unique: str
) -> None:
    async with chaos(
        servers, [f"rec:{unique}a", f"rec:{unique}b"], subscribers=12, pause=0.02
    ) as everybody:
        begun_at_victim = everybody.subscribers.all[1::2]
        everybody.publishers.start()
        await everybody.publishers.progress(20)

        await asyncio.to_thread(servers[1].kill)
        await everybody.publishers.progress(20)
        await everybody.subscribers.live()
        await everybody.publishers.progress(10)
        await everybody.settle()

        assert everybody.publishers.failures != [], "somebody was publishing at the victim"
        for subscriber in everybody.subscribers.all:
            was_cut = subscriber in begun_at_victim
            assert subscriber.closes == ([1006] if was_cut else []), subscriber.story
            for channel in subscriber.channels:
                assert subscriber.recovered[channel] == ([True] if was_cut else []), (
                    subscriber.story
                )
        assert await untrue(everybody, servers[0]) == [], "after the end of what has died"
