"""The published clients of the second generation, unmodified, read deltas.

With DELTA_PUBLICATIONS=17000 and `pytest --timeout=0` the six clients read 100 000 publications.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from centrifuge import DeltaType

from tests.conftest import connection_token
from tests.js_builds import Build
from tests.js_next import JSON_5, PROTOBUF_5
from tests.live.api_methods import call
from tests.live.python_client import SubscriptionEvents, python_client
from tests.live.second.conftest import OpenNext
from tests.live.second.go_client import open_go
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

PUBLICATIONS = int(os.environ.get("DELTA_PUBLICATIONS", "330"))
BURST = 30
TIMEOUT = 30.0
WORDS = [
    "price",
    "näme",
    "<tag> & more",
    "日本",
    "🎲",
    "line\u2028break",
    "\x00\t",
    "plain text " * 5,
]

both_formats = pytest.mark.parametrize("binary", [False, True], ids=["json", "protobuf"])


class Reader(NamedTuple):
    """One client that is subscribed with deltas."""

    read: Callable[[int], Awaitable[list[Any]]]
    """Wait for so many publications, and return their data."""
    away: Callable[[], AbstractAsyncContextManager[None]]
    """Lose the connection for the length of a block, then recover."""


def row(chance: random.Random) -> dict[str, Any]:
    return {
        "id": chance.randrange(10**6),
        chance.choice(WORDS): chance.choice(WORDS) * chance.randrange(4),
        "price": round(chance.random() * 100, 2),
        "open": chance.choice([True, False, None]),
    }


def changing(chance: random.Random) -> Iterator[Any]:
    """Yield objects that are nearly the same as those before; now and then another one."""
    rows: list[dict[str, Any]] = []
    while True:
        if chance.random() < 0.03:
            rows = [row(chance) for _ in range(chance.randrange(30))]
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(rows) + 1)
            match chance.randrange(4):
                case 0:
                    rows.insert(place, row(chance))
                case 1:
                    del rows[place : place + 1]
                case _ if place < len(rows):
                    rows[place] = rows[place] | {"price": chance.randrange(1000)}
        yield [dict(each) for each in rows]


async def check(server: Server, channel: str, reader: Reader) -> None:
    """Publish, every third time while the client is away. It reads what was published."""
    chance = random.Random(7)
    objects = changing(chance)

    async def publish() -> list[Any]:
        values = list(islice(objects, BURST))
        commands = [{"publish": {"channel": channel, "data": value}} for value in values]
        answer = await asyncio.to_thread(call, server, "batch", commands=commands)
        assert not any("error" in reply for reply in answer["replies"])
        return values

    for burst in range(PUBLICATIONS // BURST):
        if burst % 3 == 2:
            async with reader.away():
                published = await publish()
        else:
            published = await publish()
        assert await reader.read(BURST) == published


@pytest.mark.parametrize("build", [JSON_5, PROTOBUF_5], ids=["json", "protobuf"])
async def test_javascript(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    client = await connect_next(build, through=proxy)
    channel = f"deltas:{unique}"
    await client.subscribe(channel, delta="fossil")

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        async with client.away(proxy):
            yield
        await client.recovered(channel)

    await check(server, channel, Reader(lambda n: client.publications(channel, n), away))
    stats = await client.call("deltaStats", channel=channel)
    assert stats["numDeltaPayloads"] > stats["numPublications"] / 3


@both_formats
async def test_python(server: Server, proxy: TcpProxy, binary: bool, unique: str) -> None:
    channel, events = f"deltas:{unique}", SubscriptionEvents()
    deltas = 0

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        proxy.refuse()
        yield
        proxy.allow()
        again = await events.subscribed.get()
        assert (again.was_recovering, again.recovered) == (True, True)

    async def read(number: int) -> list[Any]:
        nonlocal deltas
        found = []
        async with asyncio.timeout(TIMEOUT):
            for _ in range(number):
                publication = (await events.published.get()).pub
                deltas += bool(publication.delta)
                found.append(json.loads(publication.data) if binary else publication.data)
        return found

    delays: dict[str, Any] = {"min_reconnect_delay": 0.02, "max_reconnect_delay": 0.1}
    async with python_client(proxy.url, use_protobuf=binary, **delays) as client:
        await client.connect()
        subscription = client.new_subscription(channel, events=events, delta=DeltaType.FOSSIL)
        await subscription.subscribe()
        async with asyncio.timeout(TIMEOUT):
            await events.subscribed.get()
        await check(server, channel, Reader(read, away))
    assert deltas > PUBLICATIONS / 3


@both_formats
async def test_go(
    server: Server, proxy: TcpProxy, go_program: Path, binary: bool, unique: str
) -> None:
    channel = f"deltas:{unique}"
    token = connection_token("17")
    async with open_go(go_program, proxy.url, token=token, protobuf=binary) as client:
        await client.call("connect")
        await client.call("subscribe", channel=channel, delta="fossil")
        await client.event("subscribed", channel)

        @asynccontextmanager
        async def away() -> AsyncIterator[None]:
            proxy.refuse()
            yield
            proxy.allow()
            again = await client.event("subscribed", channel)
            assert (again["was_recovering"], again["recovered"]) == (True, True)

        await check(server, channel, Reader(lambda n: client.publications(channel, n), away))
