"""Listeners of channels that are cut off again and again, with a publisher of its own process.

    python -m tests.chaos.listeners [--listeners 10] [--cuts 100] [--rate 200]

Two nodes share a Redis. Each listener of /connection/events is cut off in mid-stream, and comes
back to the other node with the ID of its last event. Prints a report, and fails if one missed a
publication, got one twice or out of order, or was told to begin anew.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.live.raw_http import Exchange, open_exchange, request
from tests.live.streaming.listeners import LISTENERS, Event, Listener, address
from tests.redis_server import RedisServer
from tests.server import API_KEY, Server

KINDS = ("daphne", "uvicorn")
CHANNELS = ["long:a", "long:b"]
END = -1
"""The last publication of each channel."""
MOST_EVENTS = 20
"""A listener is cut off after fewer events than this."""


class Visitor:
    """A listener, its numbers by channel, and what went wrong."""

    def __init__(self, nodes: list[Server], cuts: int, seed: int) -> None:
        self._nodes = nodes
        self._cuts = cuts
        self._chance = random.Random(seed)
        self._last = ""
        self.received: dict[str, list[int]] = {channel: [] for channel in CHANNELS}
        self.resets = 0
        self.visits = 0

    def has_all(self) -> bool:
        """Whether the last publication of each channel came."""
        return all(numbers[-1:] == [END] for numbers in self.received.values())

    async def run(self, cut_off: asyncio.Semaphore) -> None:
        """Listen until everything came; `cut_off` is released after the last cut."""
        while not self.has_all():
            node = self._nodes[self.visits % len(self._nodes)]
            headers = {"Last-Event-ID": self._last} if self._last else {}
            exchange = await open_exchange(node, "GET", address(*CHANNELS), headers=headers)
            await exchange.begin()
            listener = Listener(exchange)
            await listener.begun()
            self._last = self._last or listener.id
            is_cut = self.visits < self._cuts
            events = self._chance.randrange(1, MOST_EVENTS) if is_cut else None
            for _ in range(events) if events else itertools.count():
                self._take(await listener.event())
                if self.has_all():
                    break
            await exchange.abort()
            self.visits += 1
            if self.visits == self._cuts:
                cut_off.release()

    def _take(self, event: Event) -> None:
        self._last = event.id or self._last
        if event.name == "reset":
            self.resets += 1
        else:
            self.received[event.name].append(json.loads(event.data or ""))

    def complaints(self, published: int) -> list[str]:
        """Say what is wrong.

        Args:
            published: how many there were in all channels, the last ones not counted.
        """
        found = [f"{self.resets} resets"] if self.resets else []
        for number, (channel, numbers) in enumerate(self.received.items()):
            all_of_it = range(number, published, len(CHANNELS))
            expected = [*(each for each in all_of_it if each >= numbers[0]), END]
            if numbers != expected:
                lost, twice = set(expected) - set(numbers), len(numbers) - len(set(numbers))
                found.append(f"{channel}: {len(lost)} lost, {twice} twice, or in another order")
        return found


async def publish(ports: list[int], rate: float) -> None:
    """Publish numbers at a rate, in turn at each node, until the input ends; print how many."""
    ends = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    writers = [await asyncio.open_connection("127.0.0.1", port) for port in ports]
    begin, published = time.monotonic(), 0
    while not ends.done():
        while published < (time.monotonic() - begin) * rate:
            node = writers[published // len(CHANNELS) % len(writers)]
            await _post(*node, CHANNELS[published % len(CHANNELS)], published)
            published += 1
        await asyncio.sleep(1 / rate)
    seconds = time.monotonic() - begin
    for channel in CHANNELS:
        await _post(*writers[0], channel, END)
    sys.stdout.write(json.dumps({"published": published, "rate": round(published / seconds, 1)}))


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, channel: str, number: int
) -> None:
    body = json.dumps({"method": "publish", "params": {"channel": channel, "data": number}})
    head = {"Authorization": f"apikey {API_KEY}", "Content-Type": "application/json"}
    exchange = Exchange(reader, writer)
    await exchange.write(request("POST", "/api", body.encode(), head))
    await exchange.begin()
    answer = await exchange.rest()
    assert answer == b'{"result":{}}\n', answer


async def play(nodes: list[Server], listeners: int, cuts: int, rate: float) -> dict[str, Any]:
    """Cut off each listener so many times; returns the report. Its `faults` must be empty."""
    ports = [str(node.port) for node in nodes]
    publisher = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.listeners", "--rate", str(rate), "--publish", *ports],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    cut_off = asyncio.Semaphore(0)
    visitors = [Visitor(nodes, cuts, seed) for seed in range(listeners)]
    running = [asyncio.create_task(each.run(cut_off)) for each in visitors]
    for _ in visitors:
        await cut_off.acquire()
    report = json.loads((await asyncio.to_thread(publisher.communicate, ""))[0])
    await asyncio.gather(*running)
    return {
        **report,
        "cuts": sum(each.visits - 1 for each in visitors),
        "faults": [fault for each in visitors for fault in each.complaints(report["published"])],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listeners", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--publish", type=int, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.publish:
        asyncio.run(publish(arguments.publish, arguments.rate))
        return
    with tempfile.TemporaryDirectory() as name:
        redis = RedisServer(Path(name, "redis")).start()
        options = {**LISTENERS, "redis_url": redis.url}
        nodes = [Server(Path(name, kind), options, server=kind) for kind in KINDS]
        try:
            report = asyncio.run(play(nodes, arguments.listeners, arguments.cuts, arguments.rate))
        finally:
            for node in nodes:
                node.discard()
            redis.kill()
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if report["faults"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
