"""Listeners of channels that are cut off again and again, with a publisher of its own process.

    python -m tests.chaos.listeners [--listeners 10] [--cuts 100] [--rate 200] [--engine redis]

Two nodes share an engine. Each listener of /connection/events is cut off in mid-stream, anywhere in
an event, and comes back to the other node with the ID of the last event that it has whole. Prints a
report, and fails if one missed a publication, got one twice or out of order, or was told to begin
anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from typing import Any

from realtime.protocol import event_ids
from tests.chaos.command import Poster, serving
from tests.live.raw_http import Exchange, open_exchange
from tests.live.streaming.listeners import LISTENERS, Event, address, read_event
from tests.server import Server

KINDS = ("daphne", "uvicorn")
CHANNELS = ["long:a", "long:b"]
END = -1
"""The last publication of each channel."""
MOST_PARTS = 20
"""A listener is cut off before this part of a response. A part has one event, or many."""


class Missed(Exception):
    """A listener was told that it has lost publications."""


class Visitor:
    """A listener, its numbers by channel, and how often it came."""

    def __init__(self, nodes: list[Server], cuts: int, seed: int) -> None:
        self._nodes = nodes
        self._cuts = cuts
        self._chance = random.Random(seed)
        self._last = ""
        self._first = ""
        """The first ID: from here on nothing may be missing."""
        self._retry = 0.0
        self.received: dict[str, list[int]] = {channel: [] for channel in CHANNELS}
        self.visits = 0
        self.refusals = 0
        """Responses that the server ended: the listener may come back."""

    def has_all(self) -> bool:
        """Whether the last publication of each channel came."""
        return all(numbers[-1:] == [END] for numbers in self.received.values())

    async def run(self, cut_off: asyncio.Semaphore) -> None:
        """Listen until everything came; `cut_off` is released after the last cut.

        Raises:
            Missed: the server said that publications are lost.
        """
        while not self.has_all():
            node = self._nodes[(self.visits + self.refusals) % len(self._nodes)]
            headers = {"Last-Event-ID": self._last} if self._last else {}
            exchange = await open_exchange(node, "GET", address(*CHANNELS), headers=headers)
            await exchange.begin()
            assert exchange.status == 200, (exchange.status, await exchange.rest())
            if self.visits < self._cuts:
                is_over = await self._read_some(exchange)
            else:
                is_over = await self._read_on(exchange)
            await exchange.abort()
            if is_over:
                self.refusals += 1
                await asyncio.sleep(self._retry)  # as the server says
                continue
            self.visits += 1
            if self.visits == self._cuts:
                cut_off.release()

    async def _read_some(self, exchange: Exchange) -> bool:
        """Read a part of the response up to a cut; returns whether the server ended it before."""
        body = b""
        last_part = 0
        for _ in range(self._chance.randrange(1, MOST_PARTS)):
            part = await exchange.part()
            if not part:
                self._take_blocks(body)
                return True
            body += part
            last_part = len(part)
        # what the listener had by then: the rest was under way
        self._take_blocks(body[: len(body) - self._chance.randrange(last_part)])
        return False

    async def _read_on(self, exchange: Exchange) -> bool:
        """Read until everything came; returns whether the server ended the response before."""
        body = b""
        while not self.has_all():
            part = await exchange.part()
            if not part:
                return True
            body = self._take_blocks(body + part)
        return False

    def _take_blocks(self, body: bytes) -> bytes:
        """Take the blocks that are whole, as a browser does; returns what follows them."""
        *blocks, rest = body.split(b"\n\n")
        for block in blocks:
            self._take(read_event(block.decode()))
        return rest

    def _take(self, event: Event) -> None:
        self._last = self._last if event.id is None else event.id
        self._first = self._first or self._last
        if event.retry is not None:
            self._retry = int(event.retry) / 1000
        if event.name == "reset":
            raise Missed(f"after {self.visits} visits: {event.data}")
        if event.data is not None:
            self.received[event.name].append(json.loads(event.data))

    def lost_and_twice(self, published: int) -> tuple[int, int]:
        """Return how many publications the listener lost, and how many it got more than once.

        Args:
            published: how many there were in all channels, the last ones not counted.

        Raises:
            AssertionError: none of them, but they came in another order.
        """
        lost = twice = 0
        begins = event_ids.decode(self._first, CHANNELS)
        for number, (channel, numbers) in enumerate(self.received.items()):
            begin = begins[channel]
            assert begin is not None
            first = number + begin.offset * len(CHANNELS)
            expected = [*range(first, published, len(CHANNELS)), END]
            lost += len(set(expected) - set(numbers))
            twice += len(numbers) - len(set(numbers))
            assert numbers == expected or lost or twice, "publications came in another order"
        return lost, twice


async def publish(ports: list[int], rate: float) -> None:
    """Publish numbers at a rate, in turn at each node, until the input ends; print how many."""
    ends = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    posters = [await Poster.open(port) for port in ports]
    begin, published = time.monotonic(), 0
    while not ends.done():  # also where the machine is too slow for the rate
        if published < (time.monotonic() - begin) * rate:
            node = posters[published // len(CHANNELS) % len(posters)]
            await node.publish(CHANNELS[published % len(CHANNELS)], published)
            published += 1
        else:
            await asyncio.sleep(1 / rate)
    seconds = time.monotonic() - begin
    for channel in CHANNELS:
        await posters[0].publish(channel, END)
    sys.stdout.write(json.dumps({"published": published, "rate": round(published / seconds, 1)}))


async def play(nodes: list[Server], listeners: int, cuts: int, rate: float) -> dict[str, Any]:
    """Cut off each listener so many times; returns the report.

    Raises:
        ExceptionGroup: a listener failed, and the others were ended with it.
    """
    ports = [str(node.port) for node in nodes]
    begin = time.monotonic()
    publisher = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.listeners", "--rate", str(rate), "--publish", *ports],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    cut_off = asyncio.Semaphore(0)
    visitors = [Visitor(nodes, cuts, seed) for seed in range(listeners)]
    try:
        async with asyncio.TaskGroup() as group:
            for visitor in visitors:
                group.create_task(visitor.run(cut_off))
            for _ in visitors:
                await cut_off.acquire()
            report = json.loads((await asyncio.to_thread(publisher.communicate, ""))[0])
    finally:
        publisher.kill()
        publisher.wait()
    losses = [each.lost_and_twice(report["published"]) for each in visitors]
    return {
        **report,
        "cuts": sum(each.visits - 1 for each in visitors),
        "refusals": sum(each.refusals for each in visitors),
        "received": sum(len(numbers) for each in visitors for numbers in each.received.values()),
        "lost": sum(lost for lost, _ in losses),
        "twice": sum(twice for _, twice in losses),
        "seconds": round(time.monotonic() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listeners", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--engine", default="redis", choices=["redis", "postgresql"])
    parser.add_argument("--publish", type=int, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.publish:
        asyncio.run(publish(arguments.publish, arguments.rate))
        return
    with serving(LISTENERS, *KINDS, engine=arguments.engine) as nodes:
        report = asyncio.run(play(nodes, arguments.listeners, arguments.cuts, arguments.rate))
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if report["lost"] or report["twice"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
