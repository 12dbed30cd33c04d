"""Connections are cut again and again while nodes publish: nothing kept is lost or twice."""

from __future__ import annotations

import asyncio
import random

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.errors import EngineUnavailable, NoReply
from realtime.protocol.messages import Publication, StreamPosition
from tests.database_server import DatabaseServer
from tests.engine.bench import SECOND_NODE, comes_true
from tests.engine.postgresql_bench import PostgreSQLBench, postgresql_bench
from tests.unit.parts import data

LONG = ChannelOptions(history_size=100_000, history_lifetime=300)
SECONDS = 2.5
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' AND random() < %s"
)


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_acknowledged_publication_is_delivered_once_and_in_order(
    postgresql_server: DatabaseServer, unique: str, seed: int
) -> None:
    chance = random.Random(seed)
    channels = [f"{unique}{number}" for number in range(5)]
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    acknowledged: dict[str, dict[int, str]] = {channel: {} for channel in channels}
    unsure: set[str] = set()
    async with (
        postgresql_bench(postgresql_server, unique) as one,
        postgresql_bench(postgresql_server, unique, SECOND_NODE) as other,
    ):
        for channel in channels:
            await other.broker.subscribe(channel)

        async def publish(bench: PostgreSQLBench, name: str) -> None:
            number = 0
            while loop.time() < end:
                number += 1
                uid, channel = f"{name}-{number}", chance.choice(channels)
                body = "x" * chance.choice((1, 100, 6000))
                publication = Publication(data(f'"{body}"'), uid=uid)
                try:
                    done = await bench.broker.publish(Outgoing(channel, publication, LONG))
                except NoReply:
                    unsure.add(uid)
                except EngineUnavailable:
                    await asyncio.sleep(0.01)
                else:
                    assert done.position is not None
                    assert done.position.offset not in acknowledged[channel]
                    acknowledged[channel][done.position.offset] = uid

        async def cut() -> None:
            one.execute(CUT, 1.0)
            while loop.time() < end:
                await asyncio.sleep(chance.random() / 2)
                one.execute(CUT, chance.choice((0.2, 0.5, 1.0)))

        publishing = [
            publish(bench, f"{n}-{k}") for n, bench in ((1, one), (2, other)) for k in "ab"
        ]
        await asyncio.gather(cut(), *publishing)

        async def complete() -> bool:
            try:
                tops = await other.broker.positions(channels)
            except EngineUnavailable:  # the last cut
                return False
            return tops == [_last(other, channel) for channel in channels]

        await comes_true(complete, timeout=20)
        for channel in channels:
            received = [each for each, _ in other.receiver.publications[channel]]
            assert [each.offset for each in received] == [*range(1, len(received) + 1)]
            uids = {each.offset: each.uid for each in received}
            assert acknowledged[channel].items() <= uids.items()
            assert set(uids.values()) <= unsure | set(acknowledged[channel].values())
    assert other.receiver.interruptions


def _last(bench: PostgreSQLBench, channel: str) -> StreamPosition | None:
    received = bench.receiver.publications[channel]
    return received[-1][1] if received else None
