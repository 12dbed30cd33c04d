"""Durable publications in the database of the engine: `python -m tests.pending.one_database`.

    writer  a transaction that changes a row, without a durable publication and with one; in a
            process that serves, which wakes its own relay, and in a worker, which notifies nodes
    relay   rows that wait, published in the transaction that deletes them and apart from it

PostgreSQL waits for its disk. The ways take turns, so that both meet the same machine.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.database_server import Postgres

ROUNDS = 6
TRANSACTIONS = 100
"""Of a round of one writer."""
ROWS = 5000
CHANNELS = 100
NAMESPACES = [{"name": "orders", "history_size": 1000, "history_lifetime": 300}]


WAYS = ("bare", "serving", "worker")


def rounds(writers: int, way: str) -> float:
    """Return the seconds of a transaction, while so many writers commit."""
    from django.db import connection, transaction

    import realtime
    from realtime.pending.rows import Rows
    from realtime.serving import serving

    assert isinstance(serving.pending, Rows)
    serving.pending._wake_ups._wake = lambda: way == "serving"

    def write(number: int) -> None:
        for _ in range(TRANSACTIONS):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("UPDATE numbers SET n = n + 1 WHERE id = %s", [number])
                if way != "bare":
                    realtime.publish(f"orders:{number}", {"status": "paid"}, durable=True)
        connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - began) / TRANSACTIONS


def relayed(apart: bool, size: int) -> float:
    """Return the rows that a relay publishes in a second."""
    from tests.pending.relaying import Relaying, row, write

    write([row(f"orders:{n % CHANNELS}", data=json.dumps("x" * size)) for n in range(ROWS)])
    relaying = Relaying()
    if apart:
        relaying.thread._apart_until["default"] = float("inf")
    began = time.perf_counter()
    while relaying.counters.relayed < ROWS:
        relaying.look(1)
    seconds = time.perf_counter() - began
    assert relaying.counters.failures == 0
    relaying.close()
    return ROWS / seconds


def measure() -> None:
    from django.core.management import call_command
    from django.db import connection

    from realtime.pending.models import Pending
    from realtime.serving import serving

    call_command("migrate", verbosity=0)
    serving.call(lambda member: member.broker.keep_house(waits=True))  # type: ignore[attr-defined]
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE numbers (id integer PRIMARY KEY, n integer NOT NULL)")
        cursor.execute("INSERT INTO numbers SELECT id, 0 FROM generate_series(0, 20) AS id")
    for writers in (1, 4):
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, each in found.items():
                each.append(rounds(writers, way))
                Pending.objects.all().delete()
        say("writer", writers=writers, **{way: median(found[way]) * 1000 for way in WAYS})
    for size in (100, 2000):
        rates: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS // 2):
            for apart, rates_of in rates.items():
                rates_of.append(relayed(apart, size))
        before, after = (median(each) for each in rates.values())
        say("relay", bytes=size, apart_per_s=before, together_per_s=after)


def say(what: str, **figures: float) -> None:
    text = {name: round(figure, 3) for name, figure in figures.items()}
    sys.stdout.write(json.dumps({"what": what, **text}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure; print a line of JSON for each."""
    database = Postgres()
    try:
        database.create()
        database.start()
        with tempfile.TemporaryDirectory() as name:
            config = Path(name) / "config.json"
            options: dict[str, Any] = {"engine": "postgresql", "namespaces": NAMESPACES}
            config.write_text(json.dumps(options))
            os.environ |= {
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "SERVICE_CONFIG_FILE": str(config),
                "TEST_DATABASE_SETTINGS": json.dumps(database.settings),
            }
            import django

            django.setup()
            measure()
    finally:
        database.discard()


if __name__ == "__main__":
    main()
