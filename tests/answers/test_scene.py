"""One answer and its readers, while connections are cut and a node is killed.

A worker writes 60 pieces of text a second. A published client and a reader of server-sent events go
through proxies that cut them; a joiner comes in the middle; the node of both readers is killed, and
they come back to another one. `SCENE_SECONDS=60 SCENE_CUTS=20` plays it at length.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from subprocess import PIPE, Popen
from typing import Any

import httpx
import pytest

from tests.answers.conftest import CHAT
from tests.js_client import Driver, FindNode, open_driver
from tests.js_next import JSON_5, open_next
from tests.redis_server import RedisServer
from tests.server import ROOT, Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

SECONDS = float(os.environ.get("SCENE_SECONDS", "6"))
CUTS = int(os.environ.get("SCENE_CUTS", "6"))
PACE = 1 / 60

WORKER = """
import sys, time
import django; django.setup()
from realtime.answers import answer, begin
from realtime.answers.models import Answer
row = begin("chat:1", user=17, form="text")
print(row.pk, flush=True)
sys.stdin.readline()
with answer(id=row.pk) as a:
    for number in range(int(sys.argv[1])):
        a.write(f"word {number}, ")
        time.sleep(float(sys.argv[2]))
print(Answer.objects.get(pk=row.pk).text, end="", flush=True)
"""


def expected() -> str:
    return "".join(f"word {number}, " for number in range(int(SECONDS / PACE)))


@pytest.fixture
async def driver(node_process: FindNode) -> AsyncIterator[Driver]:
    """Holds the published clients."""
    async with open_driver(node_process(JSON_5)) as opened:
        yield opened


async def read_events(proxy: TcpProxy, answer_id: str) -> str:
    """Read server-sent events to the end, coming back as a browser does. Return the text."""
    text, last = "", ""
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        while last != "end":
            with suppress(httpx.HTTPError):
                address = f"{proxy.url}/answers/{answer_id}/events"
                headers = {"Last-Event-ID": last}
                async with client.stream("GET", address, headers=headers) as response:
                    data: list[str] = []
                    coming = last
                    async for line in response.aiter_lines():
                        if line.startswith("id: "):
                            coming = line.removeprefix("id: ")
                        elif line.startswith("data: "):
                            data.append(line.removeprefix("data: "))
                        elif not line and coming != last:  # an event counts when it is whole
                            text += "" if coming == "end" else "\n".join(data)
                            data, last = [], coming
            await asyncio.sleep(0.05)
    return text


@pytest.mark.timeout(60 + 3 * SECONDS)
async def test_every_reader_has_the_whole_text(
    own_server: Callable[..., Server],
    environment: dict[str, str],
    redis_server: RedisServer,
    unique: str,
    driver: Driver,
) -> None:
    chance = random.Random(7)
    shared = {name: environment[name] for name in ("TEST_DATABASE", "TEST_APPS")}
    namespace = CHAT | {"allow_subscribe_for_anonymous": True}
    options: dict[str, Any] = {"redis_url": redis_server.url, "redis_prefix": unique}
    first, second = (
        own_server(environment=shared, namespaces=[namespace], **options) for _ in range(2)
    )
    command = [sys.executable, "-c", WORKER, str(int(SECONDS / PACE)), str(PACE)]
    worker = Popen(command, cwd=ROOT, env=os.environ | environment, stdin=PIPE, stdout=PIPE)
    assert worker.stdin is not None
    assert worker.stdout is not None
    answer_id = (await asyncio.to_thread(worker.stdout.readline)).decode().strip()
    channel = f"answer:{answer_id}"

    async with TcpProxy(first.socket) as sockets, TcpProxy(first.address) as streams:
        client = await open_next(driver, JSON_5, sockets.url, user="17")
        await client.connect()
        await client.subscribe(channel)
        reading = asyncio.ensure_future(read_events(streams, answer_id))
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
        for cut in range(CUTS):
            await asyncio.sleep(chance.uniform(0.5, 1.2) * SECONDS / (CUTS + 1))
            if cut == CUTS // 2:
                for proxy, target in ((sockets, second.socket), (streams, second.address)):
                    proxy.lead_to(target)
                first.kill()
                joining = await open_next(driver, JSON_5, second.socket, user="17")
                await joining.connect()
                since = {"offset": 0, "epoch": ""}
                joined = await joining.subscribe(channel, since=since)
            else:
                sockets.cut()
                streams.cut()
        text = await reading
        row = (await asyncio.to_thread(worker.stdout.read)).decode()
        texts = [await whole(each, channel) for each in (client, joining)]

    worker.stdin.close()
    worker.stdout.close()
    worker.wait()
    assert row == expected()
    assert text == row
    assert texts == [row, row]
    assert joined["recovered"]


async def whole(client: Any, channel: str) -> str:
    """Return the text of all publications that a client got, until the end."""
    text = ""
    while isinstance(data := await client.publication(channel), str):
        text += data
    assert data == {"end": "complete"}
    return text
