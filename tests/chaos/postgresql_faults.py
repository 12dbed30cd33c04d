"""The faults of PostgreSQL that the documentation describes, each played against two nodes."""

from __future__ import annotations

import asyncio
import functools
import os
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from tests.chaos.faults import AWAY, Fault, MakeStage, Stage
from tests.chaos.postgresql import USER, ChaosPostgres
from tests.tcp_proxy import TcpProxy

LISTENS = "(query LIKE 'LISTEN%' OR query LIKE '%s.top <> f.top%')"
"""The connection on which a node listens: between rings it looks at tops."""
RINGS = "query LIKE '%pg_notify%'"
BLINK = 0.05
"""Seconds between two strokes of a fault that strikes again and again."""
MINUTES = 300
"""Less than `history_lifetime`."""
TABLES = ("stream", "entry", "once", "presence", "listed", "listing", "node", "letter", "owner")


@dataclass
class PostgreSQLStage(Stage):
    """The PostgreSQL of a fault, and how nodes reach it."""

    server: ChaosPostgres = field(default_factory=ChaosPostgres)
    replica: ChaosPostgres | None = None
    proxy: TcpProxy | None = None


def url(*servers: str) -> str:
    """Return the URL of the one of these places that accepts writes."""
    return f"postgresql://{USER}@{','.join(servers)}/postgres?target_session_attrs=read-write"


def on_postgresql(
    *,
    small_disk: bool = False,
    other_clock: bool = False,
    replica: str = "",
    proxied: bool = False,
) -> MakeStage[PostgreSQLStage]:
    """Return the stage with PostgreSQL.

    Args:
        small_disk: on a disk that can be filled.
        other_clock: with a clock that can be moved.
        replica: "sync" or "async" for one with a replica, which nodes know as well.
        proxied: behind an address that may lead to another server, of whose state it knows
            nothing.
    """

    @asynccontextmanager
    async def stage(factory: pytest.TempPathFactory) -> AsyncIterator[PostgreSQLStage]:
        stage = PostgreSQLStage(server=ChaosPostgres(small_disk=small_disk))
        servers = [stage.server]
        try:
            await asyncio.to_thread(stage.server.create)
            if other_clock:
                stage.server.move_clock(0)
            await asyncio.to_thread(stage.server.start)
            stage.server.open_service()
            if replica:
                stage.replica = await asyncio.to_thread(
                    stage.server.replica, synchronous=replica == "sync"
                )
                servers.append(stage.replica)
            stage.options = {
                "engine": "postgresql",
                "database_url": url(*(server.place for server in servers)),
            }
            if not proxied:
                yield stage
                return
            async with TcpProxy(f"postgresql://{stage.server.place}") as stage.proxy:
                place = stage.proxy.url.removeprefix("postgresql://")
                stage.options["database_url"] = f"postgresql://{USER}@{place}/postgres"
                yield stage
        finally:
            for server in servers:
                await asyncio.to_thread(server.discard)

    return stage


# what happens


async def again(stroke: Callable[[], object], seconds: float = AWAY) -> None:
    """Strike again and again for some seconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while loop.time() < deadline:
        await asyncio.to_thread(stroke)
        await asyncio.sleep(BLINK)


def end(server: ChaosPostgres, condition: str = "true", most: int = 1000) -> None:
    """End connections of the service, chosen by chance."""
    backends = server.backends(condition)
    for pid in random.sample(backends, min(most, len(backends))):
        server.execute(f"SELECT pg_terminate_backend({pid})")


async def connections_ended(stage: PostgreSQLStage) -> None:
    await again(lambda: end(stage.server, most=2))


async def listening_ended(stage: PostgreSQLStage) -> None:
    await again(lambda: end(stage.server, LISTENS))


async def ringing_ended(stage: PostgreSQLStage) -> None:
    await again(lambda: end(stage.server, RINGS))


async def backend_killed(stage: PostgreSQLStage) -> None:
    """Kill a process of the server, which restarts itself then."""
    os.kill(random.choice(stage.server.backends()), signal.SIGKILL)


async def restarted(stage: PostgreSQLStage) -> None:
    await asyncio.to_thread(stage.server.stop)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(stage.server.start)


async def crashed(stage: PostgreSQLStage) -> None:
    await asyncio.to_thread(stage.server.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(stage.server.start)


async def frozen(seconds: float, stage: PostgreSQLStage) -> None:
    stage.server.freeze()
    try:
        await asyncio.sleep(seconds)
    finally:
        stage.server.resume()


async def cut(stage: PostgreSQLStage) -> None:
    assert stage.proxy is not None
    stage.proxy.refuse()
    await asyncio.sleep(AWAY)
    stage.proxy.allow()


async def exhausted(stage: PostgreSQLStage) -> None:
    """Take all connections, also those that the service had."""
    parameters = f"host=127.0.0.1 port={stage.server.port} user={USER} dbname=postgres"
    with ExitStack() as taken:

        def take() -> None:
            end(stage.server, "application_name <> 'taken'", most=2)
            try:
                while True:
                    connection = psycopg.connect(parameters, application_name="taken")
                    taken.callback(connection.close)
            except psycopg.OperationalError:
                pass

        await again(take)


async def full(stage: PostgreSQLStage) -> None:
    with stage.server.full():
        await asyncio.sleep(AWAY)
    if not stage.server.is_running:
        await asyncio.to_thread(stage.server.start)


async def transaction_held(stage: PostgreSQLStage) -> None:
    """Hold a transaction of the site, with its view of all data."""
    with stage.server.connect() as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM pg_class")
        await asyncio.sleep(3 * AWAY)


async def vacuumed(stage: PostgreSQLStage) -> None:
    names = ", ".join(f"django_realtime.{table}" for table in TABLES)
    await again(lambda: stage.server.execute(f"VACUUM FULL {names}"))


async def clock_moved(seconds: int, stage: PostgreSQLStage) -> None:
    stage.server.move_clock(seconds)


async def failed_over(stage: PostgreSQLStage) -> None:
    assert stage.replica is not None
    await asyncio.to_thread(stage.server.kill)
    await asyncio.to_thread(stage.replica.promote)


async def failed_over_behind(stage: PostgreSQLStage) -> None:
    """Fail over to a replica that lacks publications."""
    assert stage.replica is not None
    await asyncio.to_thread(stage.replica.leave)
    await asyncio.sleep(1)
    await failed_over(stage)


async def replica_frozen(stage: PostgreSQLStage) -> None:
    """Let commits wait for a replica that answers nothing."""
    assert stage.replica is not None
    stage.replica.freeze()
    try:
        await asyncio.sleep(2 * AWAY)
    finally:
        stage.replica.resume()


async def vanished(stage: PostgreSQLStage) -> None:
    """Let the host of the server answer nothing, not even to new connections."""
    assert stage.replica is not None
    stage.server.freeze()
    await asyncio.to_thread(stage.replica.promote)


async def switched_over(stage: PostgreSQLStage) -> None:
    """Switch servers. For a while the address leads to the old one, which is a replica by then."""
    assert stage.replica is not None
    assert stage.proxy is not None
    await asyncio.to_thread(stage.server.stop)
    await asyncio.to_thread(stage.replica.promote)
    await asyncio.to_thread(stage.server.follow, stage.replica)
    await asyncio.sleep(AWAY)
    stage.proxy.lead_to(f"postgresql://{stage.replica.place}")


MOVABLE = on_postgresql(other_clock=True)
SAFE, UNSAFE = on_postgresql(replica="sync"), on_postgresql(replica="async")

FAULTS = (
    Fault("two connections ended every 50 ms, for 3 s", connections_ended, on_postgresql()),
    Fault("listening connections ended again and again", listening_ended, on_postgresql()),
    Fault("notifying connections ended again and again", ringing_ended, on_postgresql()),
    Fault("a backend killed (`SIGKILL`), the server recovers", backend_killed, on_postgresql()),
    Fault("restart (`-m fast`), 3 s away", restarted, on_postgresql()),
    Fault("crash (`-m immediate`), 3 s away", crashed, on_postgresql()),
    Fault("frozen for 5 s", functools.partial(frozen, 5.0), on_postgresql()),
    Fault("frozen for 12 s", functools.partial(frozen, 12.0), on_postgresql()),
    Fault("connections cut and refused for 3 s", cut, on_postgresql(proxied=True)),
    Fault("no connection free for 3 s, own ones ended", exhausted, on_postgresql()),
    Fault("disk full for 3 s", full, on_postgresql(small_disk=True)),
    Fault("a transaction of the site held for 9 s", transaction_held, on_postgresql()),
    Fault("`VACUUM FULL` of all tables, again and again", vacuumed, on_postgresql()),
    Fault("clock five minutes ahead", functools.partial(clock_moved, MINUTES), MOVABLE),
    Fault("clock five minutes back", functools.partial(clock_moved, -MINUTES), MOVABLE),
    Fault("synchronous replica frozen for 6 s", replica_frozen, SAFE),
    Fault("server killed, synchronous replica promoted", failed_over, SAFE, ends=False),
    Fault("the host vanished, synchronous replica promoted", vanished, SAFE, ends=False),
    Fault(
        "switchover, the address leads to the old server for 3 s",
        switched_over,
        on_postgresql(replica="sync", proxied=True),
    ),
    Fault("server killed, replica without the last second", failed_over_behind, UNSAFE, ends=False),
)
