"""What a fault did to publishers and clients, in numbers. Losses are right if clients are told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.harness import Chaos, until
from tests.chaos.publishers import Key
from tests.chaos.subscribers import Received, Subscriber
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
            received = until(mark, one.received[channel])
            lacking = own - {entry.key for entry in received}
            missed |= lacking
            untold = everybody.publishers.posted_after(lacking, one.told_at[channel], channel)
            complaints = complaints_of(one, channel, received, untold)
            found += [f"{channel}: {complaint}; {one.story}" for complaint in complaints]
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


def complaints_of(
    client: Subscriber, channel: str, received: Sequence[Received], untold: set[Key]
) -> list[str]:
    """Return the promises that were broken to a client.

    Args:
        client: a client of the channel.
        channel: the channel.
        received: what the client got there.
        untold: acknowledged publications that it did not get, and that were posted after it was
            last told that some are lost.
    """
    complaints = []
    if untold:
        complaints.append(f"{len(untold)} were lost untold, such as {min(untold)}")
    stretches = _split(received, client.beginnings[channel])
    if any(len({entry.key for entry in entries}) < len(entries) for entries in stretches):
        complaints.append("some came twice")
    if any(
        later.offset != earlier.offset + 1
        for entries in stretches
        for earlier, later in pairwise(entries)
    ):
        complaints.append("some came out of order")
    return complaints


def _split(received: Sequence[Received], beginnings: Sequence[int]) -> list[Sequence[Received]]:
    """Split what a client received where it was told to begin anew.

    After that it may get again what it had before: in a new epoch, and also in one that it knew,
    where the Sentinels name one master, then the other, and then the first one again.
    """
    return [received[begin:end] for begin, end in pairwise([0, *beginnings, len(received)])]


def _code(error: str) -> int | str:
    try:
        code: int = json.loads(error)["error"]["code"]
    except (ValueError, KeyError):
        return error
    return code
