"""Delivery over PostgreSQL: large messages, rings that are lost, connections that break."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Joined, Outgoing, Published
from realtime.engine.once import Once
from realtime.engine.postgresql.engine import Addresses, PostgreSQLStore
from realtime.engine.postgresql.schema import quoted
from realtime.engine.postgresql.streams import _PUBLISH, content_of
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from realtime.serving import run_by_hand
from tests.database_server import DatabaseServer, Postgres
from tests.engine.bench import PLAIN, SECOND_NODE, comes_true
from tests.engine.map_bench import EPHEMERAL, change
from tests.engine.postgresql_bench import PostgreSQLBench, postgresql_bench
from tests.unit.parts import data, eventually

LONG = ChannelOptions(history_size=1000, history_lifetime=100)

CLOCK_BACK = """
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp() - interval '5 minutes') * 1000000)::bigint $$
"""


@pytest.fixture(params=[0.0, 0.05], ids=["listening", "polling"])
async def node(
    request: pytest.FixtureRequest, postgresql_server: DatabaseServer, unique: str
) -> AsyncIterator[PostgreSQLBench]:
    """A node that learns of publications in one of two ways."""
    async with postgresql_bench(postgresql_server, unique, poll=request.param) as bench:
        yield bench


def large(number: int, size: int) -> Publication:
    return Publication(data(f'["{"é" * size}", {number}]'), uid=f"u{number}")


@pytest.mark.parametrize("options", [PLAIN, LONG], ids=["without history", "with history"])
async def test_publications_of_any_size_arrive_in_their_order(
    node: PostgreSQLBench, unique: str, options: ChannelOptions
) -> None:
    await node.broker.subscribe(unique)
    sizes = (1, 100_000, 2000, 2, 1900, 8000, 3, 500_000, 4)
    sent = [large(number, size) for number, size in enumerate(sizes)]

    await node.broker.publish_many([Outgoing(unique, each, options) for each in sent])
    await node.broker.notify(unique, Joined(ClientInfo("17", "C1")))

    received = await node.received(unique, len(sent))
    assert [each.data.raw for each in received] == [each.data.raw for each in sent]
    await eventually(lambda: bool(node.receiver.joins[unique]))


@pytest.mark.parametrize("options", [PLAIN, LONG], ids=["without history", "with history"])
async def test_more_publications_than_a_ring_has_room_for_arrive_in_their_order(
    node: PostgreSQLBench, unique: str, options: ChannelOptions
) -> None:
    channels = [f"{unique}{number}" for number in range(600)]
    await asyncio.gather(*(node.broker.subscribe(channel) for channel in channels))

    await node.broker.publish_many(
        [
            Outgoing(channel, Publication(data(str(value)), uid=f"u{value}"), options)
            for value in range(3)
            for channel in channels
        ]
    )

    for channel in channels:
        await node.received(channel, 3)
        assert node.values(channel) == [0, 1, 2]


async def test_clock_that_jumps_back_holds_nothing_back(node: PostgreSQLBench, unique: str) -> None:
    await node.broker.subscribe(unique)
    node.execute(CLOCK_BACK)

    await node.publish(unique, 1, options=PLAIN)
    await node.publish(unique, 2, options=LONG)

    await node.received(unique, 2)
    assert node.values(unique) == [1, 2]


async def test_publication_of_a_thread_without_an_event_loop_arrives(
    node: PostgreSQLBench, unique: str
) -> None:
    await node.broker.subscribe(unique)
    store = PostgreSQLStore(Addresses(node.address, node.address, node.poll))
    published = [
        run_by_hand(store.broker.publish(Outgoing(unique, large(n, 5000), options, Once("key"))))
        for n, options in enumerate([LONG, LONG])
    ]
    run_by_hand(store.broker.publish(Outgoing(unique, large(2, 5000), PLAIN)))

    assert [each.kept for each in published] == [True, False]
    received = await node.received(unique, 2)
    assert [each.uid for each in received] == ["u0", "u2"]
    store.close()


async def test_ring_that_was_lost_delays_publications_for_a_second(
    postgresql: PostgreSQLBench, unique: str
) -> None:
    await postgresql.broker.subscribe(unique)
    await postgresql.publish(unique, 0)
    await postgresql.received(unique, 1)

    _publish_in_silence(postgresql, unique, 3)

    await postgresql.received(unique, 4)
    assert postgresql.values(unique) == [0, 0, 1, 2]
    await postgresql.publish(unique, 4)
    await postgresql.received(unique, 5)
    offsets = [each.offset for each, _ in postgresql.receiver.publications[unique]]
    assert offsets == [1, 2, 3, 4, 5]


_NO_RING = """
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN RAISE 'no ring'; END $$
"""
_RING = """
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$
"""


@pytest.mark.parametrize("size", [1, 5000])
async def test_key_of_a_publication_without_history_is_free_if_its_ring_was_refused(
    node: PostgreSQLBench, unique: str, size: int
) -> None:
    await node.broker.subscribe(unique)
    outgoing = Outgoing(unique, large(1, size), PLAIN, Once("key"))
    store = PostgreSQLStore(Addresses(node.address, node.address, node.poll))
    node.execute(_NO_RING)
    with pytest.raises(EngineUnavailable):
        await node.broker.publish(outgoing)
    with pytest.raises(EngineUnavailable):
        run_by_hand(store.broker.publish(outgoing))
    node.execute(_RING)

    before = await node.broker.publish_many([Outgoing(unique, large(0, 1), PLAIN), outgoing])
    again = run_by_hand(store.broker.publish(outgoing))

    assert [isinstance(each, Published) and each.kept for each in before] == [True, True]
    assert not again.kept
    received = await node.received(unique, 2)
    assert [each.uid for each in received] == ["u0", "u1"]
    store.close()


async def test_of_what_was_trimmed_before_it_was_read_the_position_is_told(
    postgresql: PostgreSQLBench, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    advanced: list[tuple[str, StreamPosition]] = []
    monkeypatch.setattr(
        postgresql.receiver, "on_advance", lambda *arguments: advanced.append(arguments)
    )
    await postgresql.broker.subscribe(unique)
    _publish_in_silence(postgresql, unique, 3)
    await postgresql.broker.remove_history(unique)

    await eventually(lambda: bool(advanced))

    position = (await postgresql.broker.history(unique)).position
    assert advanced == [(unique, position)]
    assert position.offset == 3
    assert postgresql.values(unique) == []


async def test_publication_in_a_new_epoch_arrives(postgresql: PostgreSQLBench, unique: str) -> None:
    await postgresql.broker.subscribe(unique)
    before = await postgresql.publish(unique, 1)
    assert before is not None
    await postgresql.received(unique, 1)
    await postgresql.broker.renew_epoch(unique, before.epoch)

    after = await postgresql.publish(unique, 2)

    await postgresql.received(unique, 2)
    assert [position for _, position in postgresql.receiver.publications[unique]] == [before, after]


async def test_connection_that_is_lost_interrupts_delivery_and_nothing_kept_is_missed(
    postgresql: PostgreSQLBench, unique: str
) -> None:
    await postgresql.broker.subscribe(unique)
    await postgresql.publish(unique, 1)
    await postgresql.received(unique, 1)

    postgresql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND usename = current_user"
    )
    await eventually(lambda: bool(postgresql.receiver.interruptions))
    with pytest.raises(EngineUnavailable):
        await postgresql.broker.subscribe(f"{unique}-other")
    await _until_published(postgresql, unique, 2)
    await eventually(lambda: bool(postgresql.receiver.resumptions))
    await postgresql.publish(unique, 3)
    await postgresql.publish(unique, 4, options=PLAIN)

    await postgresql.received(unique, 4)
    assert sorted(postgresql.values(unique)) == [1, 2, 3, 4]
    assert len(postgresql.receiver.interruptions) == len(postgresql.receiver.resumptions) == 1


@pytest.fixture
def own_server(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> DatabaseServer:
    """A PostgreSQL that the test may end."""
    return start_database(Postgres)


async def test_restart_of_the_server_loses_nothing_that_is_kept(
    own_server: DatabaseServer, unique: str
) -> None:
    async with (
        postgresql_bench(own_server, unique) as one,
        postgresql_bench(own_server, unique, SECOND_NODE) as other,
    ):
        await other.broker.subscribe(unique)
        before = await one.publish(unique, 1, 2, options=LONG)
        await other.received(unique, 2)
        own_server.kill()
        with pytest.raises(EngineUnavailable):
            await one.publish(unique, 3, options=LONG)
        own_server.start()
        await _until_published(one, unique, 4)

        await comes_true(lambda: _resumed(other))
        after = await one.publish(unique, 5, options=LONG)
        assert before is not None
        assert after == StreamPosition(4, before.epoch)
        await other.received(unique, 4)
        assert other.values(unique) == [1, 2, 4, 5]


async def test_publication_makes_a_partition_that_is_missing(
    postgresql: PostgreSQLBench, unique: str
) -> None:
    await postgresql.publish(unique, 1, options=LONG)
    await postgresql.elapse(10 * 86_400)

    published = await asyncio.gather(
        *(postgresql.publish(unique, value, options=LONG) for value in (2, 3, 4))
    )

    assert sorted(position.offset for position in published if position) == [2, 3, 4]
    # the first was kept for longer than any channel keeps what it has
    assert await postgresql.kept(unique) == [2, 3, 4]


def _publish_in_silence(bench: PostgreSQLBench, channel: str, number: int) -> None:
    """Publish as a process that dies before it rings."""
    for value in range(number):
        record = b'{"record":["%d","u"],"checked":true}' % value
        bench.execute(
            "SELECT {schema}.publish(%s, %s, %s, '{1000}', '{100000}', '{0}', '{e}', '{NULL}')",
            *([channel.encode()], [record], [b"u"]),
        )


async def _until_published(bench: PostgreSQLBench, channel: str, value: int) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(EngineUnavailable):
                await bench.publish(channel, value, options=LONG)
                return
            await asyncio.sleep(0.05)


async def _resumed(bench: PostgreSQLBench) -> bool:
    return bool(bench.receiver.resumptions)


async def test_change_that_is_committed_after_the_map_was_read_arrives(
    node: PostgreSQLBench, unique: str
) -> None:
    put = change(unique, "a", 1, EPHEMERAL)
    columns = [[each] for each in node.engine.broker._row(put, content_of(put))]
    query = _PUBLISH.replace("{schema}", quoted(unique))

    with node.server.connect() as connection:
        connection.execute(query, [*columns, False])
        await node.broker.subscribe(unique)
        assert (await node.maps.page(unique)).entries == ()

    assert [p.key for p in await node.received(unique, 1)] == ["a"]
