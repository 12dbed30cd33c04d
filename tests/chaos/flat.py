"""Publish for many days, and show that tables and indexes stay as large as they are.

    nice -n 10 python -m tests.chaos.flat [--days 24] [--publications 100000]

A node publishes, refreshes presence and changes lists at full speed. The clock of PostgreSQL jumps
from day to day, 24 hours one after the other, and the node cleans up after each. Prints a row for
each day, and fails if a table is larger after the last day than after the twelfth by a quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing, Published
from realtime.engine.lists import Kind
from realtime.engine.once import Once
from realtime.engine.postgresql.cluster import PostgreSQLCluster
from realtime.protocol.messages import ClientInfo, Publication
from tests.database_server import QuickPostgres
from tests.engine.bench import NODE, NODE_LIFETIME
from tests.engine.postgresql_bench import PostgreSQLBench, postgresql_bench
from tests.unit.parts import data

TABLES = ("stream", "once", "listed", "presence", "letter", "node", "listing", "owner", "debt")
SETTLED_DAY = 12
TOLERANCE, SLACK = 1.25, 1e6
"""How many times as large a table may be, and how many bytes larger."""
CHANNELS = 2000
KEPT = ChannelOptions(history_size=100, history_lifetime=3600)
PLAIN = ChannelOptions()
TOGETHER = 500
HOURS = 24

_SIZES = """
SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid), n_dead_tup
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE nspname = %s
"""


async def work(bench: PostgreSQLBench, day: int, publications: int) -> None:
    """Publish: of ten one with a key, one large and not kept; churn of presence and lists."""
    small, large = data('"' + 100 * "x" + '"'), data('"' + 6000 * "x" + '"')
    for start in range(0, publications, TOGETHER):
        outgoing = []
        for number in range(start, start + TOGETHER):
            channel = f"channel{number * 7919 % CHANNELS}"
            if number % 10 == 0:
                once = Once(f"{day}/{number}", 300)
                outgoing.append(Outgoing(channel, Publication(small), KEPT, once))
            elif number % 200 == 1:
                outgoing.append(Outgoing(channel, Publication(large), PLAIN))
            else:
                outgoing.append(Outgoing(channel, Publication(small, uid=str(number)), KEPT))
        name = f"{day}/{start}"
        info = ClientInfo(name, name)
        publishing = asyncio.create_task(bench.broker.publish_many(outgoing))
        await asyncio.gather(
            *(bench.presence.add(f"channel{each}", [info], 60) for each in range(100)),
        )
        assert all(isinstance(each, Published) for each in await publishing)
        for each in range(50):
            bench.engine.lists.add(Kind.CHANNELS, f"{name}/{each}")
        await bench.idle()
        for each in range(50):
            bench.engine.lists.discard(Kind.CHANNELS, f"{name}/{each}")
        await asyncio.gather(*(bench.presence.remove(f"channel{each}", name) for each in range(50)))
        await bench.idle()


async def pass_a_day(bench: PostgreSQLBench) -> None:
    for _ in range(HOURS):
        await bench.elapse(3600)
        await bench.engine.broker.keep_house(waits=False)
        assert isinstance(bench.engine.cluster, PostgreSQLCluster)
        await bench.cluster.announce(NODE, NODE_LIFETIME)
        await bench.engine.cluster.remove_expired(NODE.uid)


def sizes(bench: PostgreSQLBench) -> dict[str, tuple[int, int, int]]:
    """Return bytes of the table, bytes of its indexes, dead rows; publications as one table."""
    found: dict[str, tuple[int, int, int]] = {}
    for name, *numbers in bench.execute(_SIZES, bench.prefix):
        table = "entry" if name.startswith("entry") else name
        if table in (*TABLES, "entry"):
            before = found.get(table, (0, 0, 0))
            found[table] = tuple(map(sum, zip(before, numbers, strict=True)))  # type: ignore[assignment]
    return found


def show(day: int, seconds: float, found: dict[str, tuple[int, int, int]]) -> None:
    cells: list[Any] = [
        f"{name} {table / 1e6:.1f}+{index / 1e6:.1f} ({dead})"
        for name, (table, index, dead) in sorted(found.items())
    ]
    sys.stdout.write(f"day {day}, {seconds:.0f} s, MB table+indexes (dead): {', '.join(cells)}\n")
    sys.stdout.flush()


async def run(days: int, publications: int) -> int:
    server = QuickPostgres()
    server.create()
    server.start()
    began = time.monotonic()
    settled: dict[str, tuple[int, int, int]] = {}
    try:
        async with postgresql_bench(server) as bench:
            found: dict[str, tuple[int, int, int]] = {}
            for day in range(1, days + 1):
                await work(bench, day, publications)
                await pass_a_day(bench)
                found = sizes(bench)
                show(day, time.monotonic() - began, found)
                if day == SETTLED_DAY:
                    settled = found
    finally:
        server.discard()
    grown = [
        name
        for name, (table, index, _) in settled.items()
        if sum(found[name][:2]) > TOLERANCE * (table + index) + SLACK
    ]
    sys.stdout.write(
        f"{days * publications} publications; grown: {', '.join(grown) or 'nothing'}\n"
    )
    return len(grown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=24)
    parser.add_argument("--publications", type=int, default=100_000)
    arguments = parser.parse_args()
    sys.exit(asyncio.run(run(arguments.days, arguments.publications)))


if __name__ == "__main__":
    main()
