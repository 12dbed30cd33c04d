"""The engine behind PgBouncer in transaction mode: nodes listen past it, or poll."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.postgresql.database import Address
from realtime.engine.postgresql.engine import Addresses, PostgreSQLEngine, PostgreSQLStore
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication
from realtime.serving import run_by_hand
from tests.database_server import DatabaseServer
from tests.engine.bench import (
    KEPT,
    NODE,
    PLAIN,
    SECOND_NODE,
    PairOf,
    RecordingReceiver,
    several,
)
from tests.engine.operations import OF_ALL, OF_SEVERAL_PROCESSES
from tests.engine.postgresql.pgbouncer import PgBouncer, pgbouncer_binary
from tests.engine.postgresql_bench import PostgreSQLBench, address_of, postgresql_bench
from tests.unit.parts import data, eventually

POLL = 0.05
LONG = ChannelOptions(history_size=100, history_lifetime=100)

PostgreSQLPair = PairOf[PostgreSQLBench]


@pytest.fixture(scope="module")
def pooler(postgresql_server: DatabaseServer) -> Iterator[PgBouncer]:
    if pgbouncer_binary() is None:
        message = "pgbouncer is not installed (apt install pgbouncer)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    pooler = PgBouncer(postgresql_server)
    yield pooler
    pooler.discard()


@pytest.fixture(params=["", "ignore_startup_parameters = options"], ids=["refuses", "ignores"])
def strict_pooler(
    request: pytest.FixtureRequest, postgresql_server: DatabaseServer, pooler: PgBouncer
) -> Iterator[PgBouncer]:
    """One that refuses the options of a connection, and one that drops them."""
    strict = PgBouncer(postgresql_server, more=request.param)
    yield strict
    strict.discard()


@pytest.fixture
def pooled(postgresql_server: DatabaseServer, pooler: PgBouncer, unique: str) -> Address:
    address = address_of(postgresql_server, unique)
    parameters = {**address.parameters, "port": pooler.port}
    return address._replace(parameters=parameters, pooled=True)


@pytest.fixture(params=[0.0, POLL], ids=["past the pooler", "polling"])
async def pair(
    request: pytest.FixtureRequest, postgresql_server: DatabaseServer, pooled: Address, unique: str
) -> AsyncIterator[PostgreSQLPair]:
    """Two nodes, whose statements share three connections."""
    async with AsyncExitStack() as stack:
        one, other = [
            await stack.enter_async_context(
                postgresql_bench(postgresql_server, unique, node, poll=request.param, pooler=pooled)
            )
            for node in (NODE, SECOND_NODE)
        ]
        yield PostgreSQLPair(one, other)


async def test_operations_work_behind_a_pooler(pair: PostgreSQLPair) -> None:
    for operation in (*OF_ALL, *OF_SEVERAL_PROCESSES):
        await operation(pair.one, operation.__name__)


async def test_node_gets_what_the_other_publishes(pair: PostgreSQLPair) -> None:
    channels = [f"c{number}" for number in range(10)]
    for bench in pair:
        for channel in channels:
            await bench.broker.subscribe(channel)

    for options in (LONG, PLAIN):
        await asyncio.gather(
            pair.one.broker.publish_many(several(channels, range(100), options)),
            pair.other.broker.publish_many(several(channels, range(100, 200), options)),
        )

    for bench in pair:
        for channel in channels:
            await eventually(lambda: len(bench.values(channel)) >= 40)  # noqa: B023
            offsets = [place.offset for _, place in bench.receiver.publications[channel] if place]
            assert offsets == list(range(1, 21))


async def test_thread_publishes_behind_a_pooler(pair: PostgreSQLPair, pooled: Address) -> None:
    await pair.one.broker.subscribe("channel")
    rings = pooled if pair.one.poll else pair.one.address
    store = PostgreSQLStore(Addresses(pooled, rings, pair.one.poll))

    def publish() -> None:
        for number in range(20):
            outgoing = Outgoing("channel", Publication(data(str(number))), KEPT)
            run_by_hand(store.broker.publish(outgoing))

    await asyncio.to_thread(publish)
    store.close()

    await eventually(lambda: pair.one.values("channel") == list(range(20)))


async def test_node_that_hears_nothing_behind_a_pooler_names_the_option(
    postgresql_server: DatabaseServer, strict_pooler: PgBouncer, unique: str
) -> None:
    async with postgresql_bench(postgresql_server, unique) as bench:
        parameters = {**bench.address.parameters, "port": strict_pooler.port}
        address = bench.address._replace(parameters=parameters)
        engine = PostgreSQLEngine(Addresses(address, address))

        with pytest.raises(EngineUnavailable, match="database_notify_url"):
            await engine.start(RecordingReceiver(), "N2")
