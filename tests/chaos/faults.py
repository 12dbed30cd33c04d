"""A fault of the server of an engine, played against two nodes at work, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import pytest

from tests.chaos.harness import OPTIONS, Chaos, chaos
from tests.chaos.publishers import Failure
from tests.chaos.verdict import Verdict, judge
from tests.conftest import new_word, start_nodes
from tests.server import Server

AWAY = 3.0
"""Seconds that a server is away, where the fault does not say how long."""
RECOVERY_TIMEOUT = 60.0
"""Seconds in which everything must work again."""
CHANNELS = 4
FEW: dict[str, Any] = {"subscribers": 12, "progress": 15, "pause": 0.05}
"""Arguments of `play`: enough work to see a fault."""
PRESENCE = {"client_presence_ping_interval": 5, "client_presence_expire_interval": 12}
TRUE_TIMEOUT = 25.0
"""Seconds in which presence and lists are true: a dead node counts for ten, and a presence entry
for twelve."""


@dataclass
class Stage:
    """The servers of a fault, and how nodes reach them."""

    options: dict[str, Any] = field(default_factory=dict)
    nodes: list[Server] = field(default_factory=list)

    def channels(self, prefix: str) -> list[str]:
        """Return the channels at work. `prefix`: the name of the service."""
        return [f"rec:{number}" for number in range(CHANNELS)]


S = TypeVar("S", bound=Stage)

MakeStage = Callable[[pytest.TempPathFactory], AbstractAsyncContextManager[S]]


@dataclass(frozen=True)
class Fault(Generic[S]):
    """A row of the table."""

    name: str
    play: Callable[[S], Awaitable[None]]
    """Begins and ends the fault."""
    stage: MakeStage[S]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the service."""
    ends: bool = True
    """False: nobody ends it, the service gets along by itself."""


class Outcome(NamedTuple):
    """What came of a fault."""

    seconds: float
    """From its end, or from its beginning if it has none, until publications reach everybody."""
    verdict: Verdict


async def play(
    fault: Fault[S],
    factory: pytest.TempPathFactory,
    *,
    subscribers: int = 24,
    progress: int = 50,
    pause: float = 0.01,
) -> Outcome:
    """Play a fault while publishers and clients are at work, and judge.

    Args:
        progress: publications of each publisher before the fault, and after it.
        pause: seconds between two publications of a publisher.

    Returns:
        What came of it. Complaints are in the verdict, and nothing is raised for them.
    """
    prefix = new_word()
    async with fault.stage(factory) as stage:
        options = {"redis_prefix": prefix, **OPTIONS, **PRESENCE, **stage.options, **fault.options}
        stage.nodes = await asyncio.to_thread(start_nodes, factory, 2, **options)
        try:
            channels = stage.channels(prefix)
            async with chaos(
                stage.nodes, channels, publishers=8, subscribers=subscribers, pause=pause
            ) as everybody:
                seconds = await _play_before(everybody, fault, stage, progress)
                late = await _late_failures(everybody, progress)
                verdict = await judge(everybody, stage.nodes[0])
                verdict.complaints.extend(f"too late for an error: {each}" for each in late[:1])
                for node in stage.nodes:
                    verdict.complaints.extend(await untrue(everybody, node))
                return Outcome(seconds, verdict)
        finally:
            for node in stage.nodes:
                await asyncio.to_thread(node.discard)


async def _play_before(everybody: Chaos, fault: Fault[S], stage: S, progress: int) -> float:
    loop = asyncio.get_running_loop()
    everybody.publishers.start()
    await everybody.publishers.progress(progress)
    began = loop.time()
    await fault.play(stage)
    if fault.ends:
        began = loop.time()
    await everybody.publishers.progress(1, RECOVERY_TIMEOUT)
    async with asyncio.timeout(RECOVERY_TIMEOUT):
        while not await _reaches_everybody(everybody):
            pass
    return loop.time() - began


async def _reaches_everybody(everybody: Chaos) -> bool:
    """Whether clients get what is published now. Those that are being told may miss it."""
    await everybody.subscribers.live()
    for channel in everybody.channels:
        mark = await everybody.publishers.mark(channel)
        try:
            await everybody.arrived(channel, mark, 1.0)
        except AssertionError:
            return False
    return True


async def _late_failures(everybody: Chaos, progress: int) -> list[Failure]:
    """Publish some more, and return what was not acknowledged."""
    before = [(one, len(one.failures)) for one in everybody.publishers.all]
    await everybody.publishers.progress(progress)
    return [failure for one, number in before for failure in one.failures[number:]]


async def untrue(everybody: Chaos, node: Server) -> list[str]:
    """Wait until presence and the list of channels are true; return what is not in time."""
    deadline = asyncio.get_running_loop().time() + TRUE_TIMEOUT
    while found := await asyncio.to_thread(_untrue_now, everybody, node):
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.5)
    return found


def _untrue_now(everybody: Chaos, node: Server) -> list[str]:
    listed = node.api("channels")
    found = [
        f"{channel} is not listed: {listed}"
        for channel in everybody.channels
        if channel not in listed.get("result", {}).get("channels", {})
    ]
    for channel in everybody.channels:
        reply = node.api("presence", channel=channel)
        present = reply.get("result", {}).get("presence", {})
        users = sorted(client["user"] for client in present.values())
        expected = sorted(one.name for one in everybody.subscribers.of(channel))
        if users != expected:
            found.append(f"{channel}: {users} are present, not {expected}: {reply}")
    return found
