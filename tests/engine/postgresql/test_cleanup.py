"""What is not kept any more leaves the tables of streams."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from realtime.config.database_options import days_kept
from realtime.config.options import ChannelOptions, Config
from realtime.config.reader import MAXIMUM
from realtime.engine.base import Outgoing
from realtime.engine.once import Once
from realtime.engine.postgresql.streams import Keeping
from realtime.protocol.messages import ClientInfo, Publication
from tests.database_server import DatabaseServer
from tests.engine.bench import KEPT, META_LIFETIME
from tests.engine.postgresql_bench import PostgreSQLBench, postgresql_bench
from tests.unit.parts import data

DAY = 86_400


def partitions(bench: PostgreSQLBench) -> Sequence[str]:
    """The partitions of entries, oldest first."""
    rows = bench.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits"
        " WHERE inhparent = '{schema}.entry'::regclass ORDER BY 1"
    )
    return [name for (name,) in rows]


async def test_partitions_are_made_ahead_and_dropped_when_nothing_in_them_is_kept(
    postgresql: PostgreSQLBench, unique: str
) -> None:
    await postgresql.publish(unique, 1)
    first = partitions(postgresql)
    assert len(first) == 4  # yesterday to the day after tomorrow

    await postgresql.elapse(7 * DAY)
    await postgresql.engine.broker.keep_house(waits=False)
    later = partitions(postgresql)
    assert set(first) <= set(later)
    assert len(later) == 8

    await postgresql.elapse(20 * DAY)
    await postgresql.engine.broker.keep_house(waits=False)
    assert len(partitions(postgresql)) == 4
    assert await postgresql.publish(unique, 2) is not None
    assert await postgresql.kept(unique) == [2]


async def test_keys_and_streams_that_expired_are_removed(
    postgresql_server: DatabaseServer, unique: str
) -> None:
    async with postgresql_bench(postgresql_server, unique, keeping=Keeping(META_LIFETIME)) as bench:
        publication = Publication(data("1"), uid="u")
        for channel, key in (("a", "once"), ("b", "twice")):
            await bench.broker.publish(Outgoing(channel, publication, KEPT, Once(key, 100)))

        await bench.elapse(200)
        await bench.engine.broker.keep_house(waits=False)
        assert bench.execute("SELECT count(*) FROM {schema}.once") == [(0,)]
        assert bench.execute("SELECT count(*) FROM {schema}.stream") == [(2,)]

        await bench.broker.publish(Outgoing("b", publication, KEPT))
        await bench.elapse(META_LIFETIME - 100)
        await bench.engine.broker.keep_house(waits=False)
        assert bench.execute("SELECT channel FROM {schema}.stream") == [(b"b",)]


async def test_expired_streams_do_not_come_back_when_positions_are_kept_forever(
    postgresql_server: DatabaseServer, unique: str
) -> None:
    async with postgresql_bench(postgresql_server, unique, keeping=Keeping(META_LIFETIME)) as bench:
        streams = bench.engine.broker
        before = await bench.publish(unique, 1)
        await bench.elapse(3 * META_LIFETIME)
        await streams.keep_house(waits=False)

        streams._keeping = streams._keeping._replace(meta_lifetime=0)
        after = await bench.publish(unique, 2)

    assert before is not None
    assert after is not None
    assert after.offset == 1
    assert after.epoch != before.epoch


async def test_largest_lifetimes_are_taken(postgresql_server: DatabaseServer, unique: str) -> None:
    options = ChannelOptions(history_size=MAXIMUM, history_lifetime=MAXIMUM)
    async with postgresql_bench(postgresql_server, unique, keeping=Keeping(MAXIMUM)) as bench:
        streams = bench.engine.broker
        days = days_kept(Config(channel=options))
        streams._keeping = streams._keeping._replace(days=days)

        await streams.keep_house(waits=True)
        await bench.publish("channel", 1, options=options)
        await bench.presence.add("channel", [ClientInfo("7", "C1")], MAXIMUM)

        assert await bench.kept("channel") == [1]
        assert "C1" in await bench.presence.get("channel")


async def test_partition_that_a_backup_reads_is_dropped_later(postgresql: PostgreSQLBench) -> None:
    await postgresql.elapse(20 * DAY)
    with postgresql.server.connect() as backup:
        backup.execute(f"LOCK TABLE {postgresql.prefix}.entry IN ACCESS SHARE MODE")
        await postgresql.engine.broker.keep_house(waits=True)
        assert len(partitions(postgresql)) == 8
        assert await postgresql.publish("channel", 1) is not None

    await postgresql.elapse(60)
    await postgresql.engine.broker.keep_house(waits=False)
    assert len(partitions(postgresql)) == 4


async def test_node_that_starts_waits_for_the_cleanup_of_another(
    postgresql: PostgreSQLBench,
) -> None:
    with postgresql.server.connect() as other:
        other.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            (f'"{postgresql.prefix}".keep_house',),
        )
        keeping = asyncio.create_task(postgresql.engine.broker.keep_house(waits=True))
        await asyncio.sleep(1.5)  # longer than a partition is waited for
    await keeping


async def test_cleanup_goes_on_after_the_clock_was_moved_back(postgresql: PostgreSQLBench) -> None:
    await postgresql.elapse(DAY)
    await postgresql.engine.broker.keep_house(waits=False)
    await postgresql.elapse(-DAY)
    once = Once("key", 100)
    await postgresql.broker.publish(Outgoing("a", Publication(data("1")), KEPT, once))

    await postgresql.elapse(200)
    await postgresql.engine.broker.keep_house(waits=False)

    assert postgresql.execute("SELECT count(*) FROM {schema}.once") == [(0,)]
