"""What a fault did to publishers and clients, in numbers. Losses are right if clients are told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.harness import Chaos, until
from tests.chaos.publishers import Key
from tests.chaos.subscribers import Subscriber
from tests.server import Server


class Verdict(NamedTuple):
    """The outcome for everybody."""

    acknowledged: int
    """Publications that were acknowledged."""
    errors: Counter[int | str]
    """Error of a publisher → how often it came."""
    slowest: float
    """Seconds that the slowest answer to a publisher took."""
    closes: Counter[int]
    """Close code → how many clients got it."""
    recovered: Counter[bool]
    """What clients were told about recovery."""
    forgotten: int
    """Acknowledged publications that are not in history, which is long enough for all."""
    missed: int
    """Acknowledged publications that some client did not get."""
    complaints: list[str]
    """Broken promises: untold losses, and publications twice or out of order."""


async def judge(everybody: Chaos, server: Server) -> Verdict:
    """Wait until all clients have the last publication of each channel, and judge.

    `server`: whose history counts.
    """
    await everybody.publishers.stop()
    acknowledged: set[Key] = set()
    forgotten: set[Key] = set()
    missed: set[Key] = set()
    found: list[str] = []
    for channel in everybody.channels:
        mark = await everybody.publishers.mark(channel)
        await everybody.arrived(channel, mark)
        own = everybody.publishers.acknowledged(channel)
        acknowledged |= own
        reply = await asyncio.to_thread(server.api, "history", channel=channel)
        assert "result" in reply, reply
        forgotten |= own - {Key(*one["data"]) for one in reply["result"]["publications"]}
        for one in everybody.subscribers.of(channel):
            lacking, complaints = _of_client(one, channel, mark, own)
            missed |= lacking
            found += complaints
    return Verdict(
        len(acknowledged),
        Counter(_code(failure.error) for failure in everybody.publishers.failures),
        max(one.slowest for one in everybody.publishers.all),
        Counter(everybody.subscribers.closes),
        Counter(everybody.subscribers.recovered),
        len(forgotten),
        len(missed),
        found,
    )


def _of_client(
    one: Subscriber, channel: str, mark: Key, acknowledged: set[Key]
) -> tuple[set[Key], list[str]]:
    """Return the publications that a client did not get, and what is wrong."""
    received = until(mark, one.received[channel])
    lacking = acknowledged - {entry.key for entry in received}
    # a client that was told begins anew, and may get in the new epoch what it had in the old one
    counts = Counter((entry.epoch, entry.key) for entry in received)
    complaints = []
    if lacking and False not in one.recovered[channel]:
        complaints.append(f"{len(lacking)} were lost untold, such as {min(lacking)}")
    if counts.total() > len(counts):
        complaints.append("some came twice")
    if any(
        later.epoch == earlier.epoch and later.offset != earlier.offset + 1
        for earlier, later in pairwise(received)
    ):
        complaints.append("some came out of order")
    return lacking, [f"{channel}: {complaint}; {one.story}" for complaint in complaints]


def _code(error: str) -> int | str:
    try:
        code: int = json.loads(error)["error"]["code"]
    except (ValueError, KeyError):
        return error
    return code
