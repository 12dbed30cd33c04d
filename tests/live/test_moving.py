"""A service moves node by node from Redis to PostgreSQL and back, while durable rows come in.

The steps are those of docs/postgresql.md. Known truth: the numbers that a worker has committed.

Invariants:
- Each committed number is in the streams of one engine, once.
- What a client gets between two beginnings is one stream without gaps and without repetition. It
  is informed of each beginning: `recovered` is false.
- A user who is blocked stays out of every node.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from centrifuge import PublicationContext, SubscribedContext, SubscriptionEventHandler

from tests.chaos.publishers import eventually
from tests.chaos.subscribers import Subscriber
from tests.conftest import connection_token, new_word
from tests.database_server import DatabaseServer, Postgres
from tests.live.configurations import FORCED
from tests.live.processes import Worker, worker
from tests.live.python_client import python_client
from tests.ports import free_port
from tests.processes import run_python
from tests.protocol_client import Closed, open_client
from tests.redis_server import RedisServer
from tests.server import API_KEY, ROOT, SECRET, Server

CHANNEL = "orders:1"
OPTIONS: dict[str, Any] = {
    "v3_use_offset": True,
    "namespaces": [
        {
            "name": "orders",
            "durable": True,
            "history_size": 5000,
            "history_lifetime": 600,
            "history_recover": True,
        }
    ],
}
PAUSE = 0.05
"""Seconds between two commits."""

READ = f"""
import json, realtime
found = realtime.history({CHANNEL!r}, limit=5000)
print(json.dumps([each["data"][1] for each in found]))
"""
PAGE = (ROOT / "docs" / "postgresql.md").read_text()
[COPY_BLOCKED] = re.findall(r"# copy_blocked\.py\n(.*?)```", PAGE, re.DOTALL)
CREATE = """
from django.db import connection
from realtime.engine.postgresql.schema import create
with connection.cursor() as cursor:
    create(cursor, {schema!r})
"""
BLOCKED = "blocked"


class Received(NamedTuple):
    """A publication at a client of the second generation."""

    epoch: str
    offset: int


class Journal(SubscriptionEventHandler):
    """What a client of the second generation is told, as a `Subscriber` keeps it."""

    def __init__(self) -> None:
        self.received: dict[str, list[Received]] = {CHANNEL: []}
        self.beginnings: dict[str, list[int]] = {CHANNEL: []}
        self.is_live = False
        self._epoch = ""

    async def on_subscribed(self, ctx: SubscribedContext) -> None:
        assert ctx.stream_position is not None
        if ctx.was_recovering and not ctx.recovered:
            self.beginnings[CHANNEL].append(len(self.received[CHANNEL]))
        self._epoch = ctx.stream_position.epoch
        self.is_live = True

    async def on_publication(self, ctx: PublicationContext) -> None:
        self.received[CHANNEL].append(Received(self._epoch, ctx.pub.offset))


class Node:
    """A place at which a server runs, with one engine and then another."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory, self._environment = directory, environment
        self._port = free_port()
        self._server: Server | None = None

    @property
    def socket(self) -> str:
        return f"ws://127.0.0.1:{self._port}/connection/websocket"

    def serve(self, options: Mapping[str, Any]) -> None:
        """End the server in order, and start one with these options."""
        self.stop()
        self._server = Server(
            self._directory, OPTIONS | dict(options), environment=self._environment, port=self._port
        )

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()


class Site:
    """Two nodes, a worker, and commands with the options of an engine."""

    def __init__(self, directory: Path, database: DatabaseServer) -> None:
        self._directory = directory
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "TEST_DATABASE_SETTINGS": json.dumps(database.settings),
        }
        self.nodes = [Node(directory / f"node{n}", self.environment) for n in range(2)]
        self.committed = 0

    def config(self, options: Mapping[str, Any]) -> dict[str, str]:
        """The environment of a process without clients."""
        path = self._directory / "config.json"
        keys = {"token_hmac_secret_key": SECRET, "api_key": API_KEY}
        path.write_text(json.dumps(keys | OPTIONS | dict(options)))
        return self.environment | {"SERVICE_CONFIG_FILE": str(path)}

    def manage(self, options: Mapping[str, Any], *arguments: str) -> str:
        """Run a management command to its end; returns what it wrote."""
        done = run_python(["manage.py", *arguments], ROOT, self.config(options))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, options: Mapping[str, Any], code: str) -> str:
        """Run code of the site."""
        text = f"import django, os\ndjango.setup()\nos.chdir({str(self._directory)!r})\n{code}"
        done = run_python(["-c", text], ROOT, self.config(options))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def copy_blocked(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Do what the page says."""
        blocked = self.manage(old, "realtime", "blocked", "--json")
        (self._directory / "blocked.json").write_text(blocked)
        self.run(new, COPY_BLOCKED)

    @asynccontextmanager
    async def committing(self) -> AsyncIterator[None]:
        """Commit numbers one after the other."""
        is_over = False

        async def commit(process: Worker) -> None:
            while not is_over:
                data = ["worker", self.committed + 1]
                outcome = await asyncio.to_thread(process.call, "call", "publish", CHANNEL, data)
                assert "error" not in outcome, outcome
                self.committed += 1
                await asyncio.sleep(PAUSE)

        with worker(self.config({"engine": "memory"})) as process:
            task = asyncio.create_task(commit(process))
            try:
                await eventually(lambda: self.committed > 0 or task.done(), "a commit")
                yield
                is_over = True
                await task
            finally:
                await end(task)


@pytest.fixture
def site(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer], tmp_path: Path
) -> Iterator[Site]:
    site = Site(tmp_path, start_database(Postgres))
    site.manage({"engine": "memory"}, "migrate", "realtime_pending", "-v0")
    yield site
    for node in site.nodes:
        node.stop()


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait until its connection is closed."""
    task.cancel()
    await asyncio.wait([task])


async def is_refused(node: Node) -> bool:
    """Whether a node refuses the blocked user."""
    try:
        async with open_client(node.socket, token=connection_token(BLOCKED)):
            return False
    except Closed as closed:
        return closed.code == FORCED[0]


def judge(client: Subscriber | Journal) -> None:
    """Compare what a client got between two beginnings with a stream without gaps."""
    received = client.received[CHANNEL]
    for begin, end in pairwise([0, *client.beginnings[CHANNEL], len(received)]):
        part = received[begin:end]
        assert len({each.epoch for each in part}) <= 1, "not informed of an epoch"
        offsets = [each.offset for each in part]
        assert offsets == [
            first + number for number, first in enumerate(offsets[:1] * len(offsets))
        ]


@pytest.mark.timeout(300)
async def test_service_moves_to_postgresql_and_back(
    site: Site,
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
    redis_server: RedisServer,
    tmp_path: Path,
) -> None:
    redis, again = ({"redis_url": redis_server.url, "redis_prefix": new_word()} for _ in range(2))
    schema = new_word()
    postgresql = {"engine": "postgresql", "database_schema": schema}
    site.run({"engine": "memory"}, CREATE.format(schema=schema))
    loop = asyncio.get_running_loop()

    async def apart(work: Callable[..., Any], *arguments: Any) -> Any:
        return await loop.run_in_executor(None, work, *arguments)

    for node in site.nodes:
        await apart(node.serve, redis)
    site.run(redis, f"import realtime; realtime.block({BLOCKED!r}, 3600)")

    first = [
        Subscriber(f"first{n}", [node, *site.nodes], [CHANNEL], "json")  # type: ignore[list-item]
        for n, node in enumerate(site.nodes)
    ]
    away = Subscriber("away", site.nodes, [CHANNEL], "protobuf")  # type: ignore[arg-type]
    journals = [Journal() for _ in site.nodes]
    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(each.run()) for each in (*first, away)]
        for journal, node in zip(journals, site.nodes, strict=True):
            client = await stack.enter_async_context(
                python_client(
                    node.socket + "?cf_protocol_version=v2",
                    min_reconnect_delay=0.1,
                    max_reconnect_delay=0.5,
                )
            )
            subscription = client.new_subscription(CHANNEL, events=journal)
            await subscription.subscribe()
            await client.connect()
        clients: list[Subscriber | Journal] = [*first, away, *journals]
        await eventually(lambda: all(each.is_live for each in clients), "subscribed clients")

        async with site.committing():
            await eventually(lambda: len(away.received[CHANNEL]) > 8, "publications")
            await end(tasks.pop())  # it comes back after both moves
            for old, new in ((redis, postgresql), (postgresql, again)):
                await apart(site.copy_blocked, old, new)
                for node in site.nodes:
                    for journal in journals:
                        journal.is_live = False
                    await apart(node.serve, new)
                    count = site.committed
                    await eventually(lambda: site.committed > count + 8, "commits")  # noqa: B023
                    assert await is_refused(node)
                for follower in (each for each in clients if each is not away):
                    count = len(follower.received[CHANNEL])
                    await eventually(
                        lambda: len(follower.received[CHANNEL]) > count + 5,  # noqa: B023
                        "clients that go on",
                    )
            tasks.append(asyncio.create_task(away.run()))
            await eventually(lambda: len(away.recovered[CHANNEL]) > 0, "a client that is back")

        truth = [*range(1, site.committed + 1)]
        streams: dict[str, list[int]] = {}

        def read() -> bool:
            for name, options in (("redis", redis), ("postgresql", postgresql), ("again", again)):
                streams[name] = json.loads(site.run(options, READ))
            return sum(map(len, streams.values())) >= len(truth)

        while not await apart(read):
            await asyncio.sleep(0.2)
        for follower in clients:
            top = len(streams["again"])
            await eventually(
                lambda: follower.received[CHANNEL][-1].offset == top,  # noqa: B023
                "the last publication",
            )
        for task in tasks:
            await end(task)

    assert away.recovered[CHANNEL] == [False]
    assert Counter(number for stream in streams.values() for number in stream) == Counter(truth)
    assert all(stream == sorted(stream) for stream in streams.values())
    assert all(len(stream) > 8 for stream in streams.values())
    for follower in clients:
        judge(follower)
    assert all(len(each.beginnings[CHANNEL]) >= 2 for each in clients if each is not away)
