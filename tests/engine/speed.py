"""How fast the engines are: `python -m tests.engine.speed [publish] [puts] [delivery] [writes]`.

    publish   publications a second in a channel with history, by one caller and by fifty; for
              PostgreSQL also the statement alone, by one caller
    puts      puts into a map of 10 000 keys, beside publications with history, by turns: the median
              time of one, and their ratio
    delivery  from a publisher to the clients of three processes, one of the memory engine
    writes    a site that writes at half of its pace, while 500 publications a second go through
              the same PostgreSQL

PostgreSQL waits for its disk; Redis does not. Each prints a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine.base import Engine, Outgoing
from realtime.engine.factory import Engines
from realtime.engine.memory import MemoryEngine
from realtime.engine.postgresql.schema import create
from realtime.engine.postgresql.streams import PostgreSQLStreams
from realtime.protocol.messages import Publication
from realtime.timers import Timers
from tests.chaos.command import Poster
from tests.chaos.storm import Client, commands, open_client
from tests.conftest import connection_token
from tests.database_server import Postgres
from tests.engine.bench import RecordingReceiver
from tests.pending.speed import milliseconds
from tests.redis_server import RedisServer
from tests.server import Server
from tests.unit.parts import data

KEPT = ChannelOptions(history_size=1000, history_lifetime=300)
MAP = ChannelOptions(map="recoverable", history_size=1000, history_lifetime=300)
MAP_KEYS = 10_000
BATCH = 500
NAMESPACES = [{"name": "kept", "history_size": 1000, "history_lifetime": 300}]
CALLERS = 50
NODES = 3
PACE = 50
"""Publications a second of `delivery`."""
LOAD = 500
"""Publications a second beside the writes of a site."""
WARM = 1.0
DATA = data(json.dumps({"at": 1763800000.123, "text": "x" * 60}))

MEMORY, REDIS, POSTGRESQL = "memory", "redis", "postgresql"


def say(what: str, **figures: object) -> None:
    sys.stdout.write(json.dumps({"what": what, **figures}) + "\n")
    sys.stdout.flush()


class Servers:
    """A Redis and a PostgreSQL, and the options of the service for each engine."""

    def __init__(self, directory: Path, undo: ExitStack) -> None:
        redis = RedisServer(directory / "redis").start()
        undo.callback(redis.kill)
        self.database = Postgres()
        undo.callback(self.database.discard)
        self.database.create()
        self.database.start()
        with self.database.connect() as connection:
            create(connection)
        self.url = f"postgresql://postgres@127.0.0.1:{self.database.port}/postgres"
        self.options: Mapping[str, dict[str, Any]] = {
            MEMORY: {"engine": "memory"},
            REDIS: {"redis_url": redis.url, "redis_prefix": "speed"},
            POSTGRESQL: {"engine": "postgresql", "database_url": self.url},
        }

    def engine(self, name: str) -> Engine:
        config = load(self.options[name])
        return Engines().of(config).engine(config) or MemoryEngine(
            Timers(asyncio.get_running_loop())
        )


async def counted(call: Callable[[int], Awaitable[object]], callers: int, seconds: float) -> float:
    """Return how often a second some callers called."""
    count = 0
    begin = time.perf_counter() + WARM
    end = begin + seconds

    async def caller(number: int) -> None:
        nonlocal count
        while (now := time.perf_counter()) < end:
            await call(number)  # in the memory engine it does not suspend
            count += now >= begin

    await asyncio.gather(*map(caller, range(callers)))
    return count / seconds


def outgoing(number: int) -> Outgoing:
    return Outgoing(f"kept:{number}", Publication(DATA, uid=f"{time.time_ns()}"), KEPT)


async def publish(servers: Servers, seconds: float) -> None:
    for name in servers.options:
        engine = servers.engine(name)
        await engine.start(RecordingReceiver(), "bench")
        try:
            broker = engine.broker
            one = await counted(lambda n, b=broker: b.publish(outgoing(n)), 1, seconds)  # type: ignore[misc]
            many = await counted(lambda n, b=broker: b.publish(outgoing(n)), CALLERS, seconds)  # type: ignore[misc]
            alone = None
            if isinstance(broker, PostgreSQLStreams):
                alone = await counted(lambda n, b=broker: b._keep([outgoing(n)]), 1, seconds)  # type: ignore[misc]
        finally:
            await engine.stop()
        figures = {"one_caller": round(one), "fifty_callers": round(many)}
        if alone:
            figures |= {"statement_alone": round(alone)}
            say("publish", engine=name, **figures, ratio=round(one / alone, 2))
        else:
            say("publish", engine=name, **figures)


def put(number: int) -> Outgoing:
    publication = Publication(DATA, uid=f"{time.time_ns()}", key=f"key:{number % MAP_KEYS}")
    return Outgoing("map", publication, MAP)


async def puts(servers: Servers, seconds: float) -> None:
    for name in servers.options:
        engine = servers.engine(name)
        if engine.maps is None:
            continue
        await engine.start(RecordingReceiver(), "bench")
        try:
            for start in range(0, MAP_KEYS, BATCH):
                await engine.broker.publish_many([put(n) for n in range(start, start + BATCH)])
            times: dict[Callable[[int], Outgoing], list[float]] = {outgoing: [], put: []}
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                for make, taken in times.items():
                    each = make(random.randrange(MAP_KEYS) if make is put else 0)
                    begin = time.perf_counter()
                    await engine.broker.publish(each)
                    taken.append(time.perf_counter() - begin)
        finally:
            await engine.stop()
        plain, change = (statistics.median(taken) * 1e6 for taken in times.values())
        say("puts", engine=name, publish_us=plain, put_us=change, ratio=round(change / plain, 2))


@contextmanager
def nodes(options: Mapping[str, Any], directory: Path, number: int) -> Iterator[list[Server]]:
    with ExitStack() as undo:
        started = []
        for n in range(number):
            server = Server(
                directory / f"{n}", {**options, "namespaces": NAMESPACES}, server="uvicorn"
            )
            undo.callback(server.discard)
            started.append(server)
        yield started


async def paced(call: Callable[[], Awaitable[object]], rate: float, seconds: float) -> int:
    """Call so often a second, without a pause after a late one; return how often."""
    began, number = time.perf_counter(), round(rate * seconds)
    for n in range(number):
        await asyncio.sleep(max(0.0, began + n / rate - time.perf_counter()))
        await call()
    return number


async def delivery(servers: Servers, directory: Path, seconds: float) -> None:
    greeting = commands(
        ("connect", {"token": connection_token("watcher")}), ("subscribe", {"channel": "kept:a"})
    )
    for name, options in servers.options.items():
        number = 1 if name == MEMORY else NODES
        with nodes(options, directory / name, number) as started:
            clients: list[Client] = [await open_client(s.port, greeting, 2) for s in started]
            await asyncio.gather(*(client.ready for client in clients))
            poster = await Poster.open(started[0].port)

            async def post(poster: Poster = poster) -> None:
                await poster.publish("kept:a", {"at": time.time()})

            await paced(post, PACE, WARM)
            await asyncio.sleep(WARM)
            for client in clients:
                client.late.clear()
            posted = await paced(post, PACE, seconds)
            await asyncio.sleep(WARM)
            late = [each for client in clients for each in client.late]
            poster.close()
            for client in clients:
                client.transport.close()
        say(
            "delivery",
            engine=name,
            processes=number,
            lost=posted * number - len(late),
            **milliseconds(late),
        )


class Site(threading.Thread):
    """Writes rows of its own, each in a transaction, at a pace or as fast as it can."""

    def __init__(self, database: Postgres, pace: float, seconds: float) -> None:
        super().__init__()
        self.done = 0
        self._database, self._pace, self._seconds = database, pace, seconds

    def run(self) -> None:
        with self._database.connect() as connection:
            began = time.perf_counter()
            while (passed := time.perf_counter() - began) < self._seconds:
                if self._pace and self.done > passed * self._pace:
                    time.sleep(self.done / self._pace - passed)
                with connection.transaction():
                    row = self.done % 1000
                    connection.execute("UPDATE orders SET total = total + 1 WHERE id = %s", [row])
                    connection.execute("INSERT INTO lines (amount) VALUES (1)")
                self.done += 1


async def writes(servers: Servers, seconds: float) -> None:
    with servers.database.connect() as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, total integer)")
        connection.execute("CREATE TABLE lines (id bigserial PRIMARY KEY, amount integer)")
        connection.execute("INSERT INTO orders SELECT n, 0 FROM generate_series(0, 999) n")

    async def wrote(pace: float) -> float:
        site = Site(servers.database, pace, seconds)
        site.start()
        await asyncio.to_thread(site.join)
        return site.done / seconds

    fastest = await wrote(0)
    half = await wrote(fastest / 2)
    engine = servers.engine(POSTGRESQL)
    await engine.start(RecordingReceiver(), "bench")
    number, published = 0, set()

    async def one() -> None:
        nonlocal number
        number += 1
        task = asyncio.create_task(engine.broker.publish(outgoing(number % 20)))
        published.add(task)
        task.add_done_callback(published.discard)

    try:
        publishing = asyncio.create_task(paced(one, LOAD, seconds + WARM))
        await asyncio.sleep(WARM / 2)
        beside = await wrote(fastest / 2)
        await publishing
        await asyncio.gather(*published)
    finally:
        await engine.stop()
    say(
        "writes",
        fastest=round(fastest),
        at_half=round(half),
        beside_publications=round(beside),
        ratio=round(beside / half, 3),
        published_per_s=round(number / (seconds + WARM)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", help="publish, puts, delivery, writes; all of them")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    what = options.what or ["publish", "puts", "delivery", "writes"]
    with tempfile.TemporaryDirectory() as name, ExitStack() as undo:
        directory = Path(name)
        servers = Servers(directory, undo)
        if "publish" in what:
            asyncio.run(publish(servers, options.seconds))
        if "puts" in what:
            asyncio.run(puts(servers, options.seconds))
        if "delivery" in what:
            asyncio.run(delivery(servers, directory, options.seconds))
        if "writes" in what:
            asyncio.run(writes(servers, options.seconds))


if __name__ == "__main__":
    main()
