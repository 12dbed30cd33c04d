"""A listener that is cut off again and again while much is published gets each publication once."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable

import pytest

from tests.live.raw_http import open_exchange
from tests.live.streaming.listeners import LISTENERS, Listener, address, read_event
from tests.server import Server

Cluster = Callable[..., list[Server]]

RATE = 200
"""Publications per second, over all channels."""
CHANNELS = 2

KINDS = {
    "daphne to daphne": (("daphne", "daphne"), 100),
    "uvicorn to granian": (("uvicorn", "granian"), 20),
}
"""The servers of two nodes, and how often the listener is cut off."""


@pytest.mark.parametrize(("kinds", "cuts"), KINDS.values(), ids=list(KINDS))
async def test_listener_of_two_nodes_gets_each_publication_once(
    shared_cluster: Cluster, kinds: tuple[str, str], cuts: int, unique: str
) -> None:
    options = {**LISTENERS, "redis_prefix": "listeners-at-two-nodes"}
    nodes = [shared_cluster(server=kind, **options)[at] for at, kind in enumerate(kinds)]
    channels = [f"long:{unique}-{number}" for number in range(CHANNELS)]
    received: dict[str, list[int]] = {channel: [] for channel in channels}
    published = 0
    done = asyncio.Event()

    async def publish() -> None:
        """Publish at the rate until the listener was cut off often enough."""
        nonlocal published
        loop = asyncio.get_running_loop()
        begin = loop.time()
        while not done.is_set():
            for _ in range(int((loop.time() - begin) * RATE) - published):
                channel = channels[published % CHANNELS]
                node = nodes[published // CHANNELS % len(nodes)]
                await asyncio.to_thread(node.publish, channel, published)
                published += 1
            await asyncio.sleep(0.01)
        for channel in channels:
            await asyncio.to_thread(nodes[0].publish, channel, -1)

    publishing: asyncio.Task[None] | None = None
    last = ""
    random_ = random.Random(unique)
    visit = 0
    while any(numbers[-1:] != [-1] for numbers in received.values()):
        headers = {"Last-Event-ID": last} if last else {}
        node = nodes[visit % len(nodes)]
        exchange = await open_exchange(node, "GET", address(*channels), headers=headers)
        await exchange.begin()
        listener = Listener(exchange)
        await listener.begun()
        last = last or listener.id
        publishing = publishing or asyncio.create_task(publish())
        # what else has come by then is lost with the connection
        for _ in range(random_.randrange(1, 10) if visit < cuts else 1_000_000):
            event = read_event((await exchange.read_until(b"\n\n")).decode())
            assert event.name != "reset"
            last = event.id or last
            if event.data is not None:
                received[event.name].append(json.loads(event.data))
            if visit >= cuts and all(numbers[-1:] == [-1] for numbers in received.values()):
                break
        await exchange.abort()
        visit += 1
        if visit == cuts:
            done.set()
    assert publishing is not None
    await publishing

    assert received == {
        channel: [*range(number, published, CHANNELS), -1]
        for number, channel in enumerate(channels)
    }
