"""Signals about clients: in order, on a thread of their own, bounded, whatever receivers do."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.dispatch import Signal

from realtime import signals
from realtime.config.reader import load
from realtime.hooks.events import CLOSE_TIMEOUT, MAX_EVENTS, SIGNALS, SiteEvents
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock

TOO_SLOW = "Signal receivers are too slow, dropping signals"
PATIENCE = 10.0


class Receiver:
    """Keeps what it hears; waits at a gate that is open at first."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, signal: Signal, sender: Any, **details: Any) -> None:
        assert sender is None
        self.heard.append(details)
        self.threads.add(threading.current_thread().name)
        self.gate.wait(PATIENCE)

    def clients(self) -> list[Any]:
        return [details["client"] for details in self.heard]


Connect = Callable[..., None]


@pytest.fixture
def listen() -> Iterator[Connect]:
    """Connect a receiver for this test: `listen(signals.connected, receiver)`."""
    connected: list[tuple[Signal, Any]] = []

    def listen(signal: Signal, receiver: Any) -> None:
        signal.connect(receiver, weak=False)
        connected.append((signal, receiver))

    yield listen
    for signal, receiver in connected:
        assert signal.disconnect(receiver)


@pytest.fixture
def receiver(listen: Connect) -> Iterator[Receiver]:
    """One that hears who connects."""
    receiver = Receiver()
    listen(signals.connected, receiver)
    yield receiver
    receiver.gate.set()


@pytest.fixture
async def events() -> AsyncIterator[SiteEvents]:
    made = SiteEvents()
    yield made
    await made.close()


def connect(events: SiteEvents, *clients: Any) -> None:
    for client in clients:
        events.emit("connected", user="17", client=client)


def signal_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "realtime-signals"]


@pytest.mark.parametrize("kind", SIGNALS)
async def test_every_kind_is_a_signal_with_its_details(
    events: SiteEvents, listen: Connect, kind: str
) -> None:
    receiver = Receiver()
    listen(getattr(signals, kind), receiver)
    events.emit(kind, channel="news", user="17")
    assert await events.drained(PATIENCE)
    assert receiver.heard == [{"channel": "news", "user": "17"}]


async def test_receivers_hear_in_the_order_of_what_happened(
    events: SiteEvents, receiver: Receiver, listen: Connect
) -> None:
    listen(signals.disconnected, receiver)
    for client in range(100):
        connect(events, client)
        events.emit("disconnected", user="17", client=client, code=0)
    assert await events.drained(PATIENCE)
    assert receiver.clients() == [client for client in range(100) for _ in range(2)]
    assert receiver.threads == {"realtime-signals"}  # one, and not that of the loop


async def test_emit_does_not_wait_for_receivers(events: SiteEvents, receiver: Receiver) -> None:
    receiver.gate.clear()
    connect(events, *range(10))
    assert not await events.drained(0.05)
    assert receiver.clients() == [0]
    receiver.gate.set()
    assert await events.drained(PATIENCE)
    assert receiver.clients() == [*range(10)]


async def test_what_nobody_wants_to_hear_costs_no_thread() -> None:
    events = SiteEvents()
    before = signal_threads()
    connect(events, 1)
    assert signal_threads() == before
    assert await events.drained(0)
    await events.close()


async def test_failing_receiver_is_logged_once_and_the_others_hear_all(
    events: SiteEvents, listen: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> None:
        raise LookupError("the receiver is broken")

    async def fail_as_well(**details: Any) -> None:
        raise LookupError("async")

    receiver = Receiver()
    for each in (fail, fail_as_well, receiver):
        listen(signals.connected, each)
    connect(events, 1, 2)
    assert await events.drained(PATIENCE)

    assert receiver.clients() == [1, 2]
    entries = [entry for entry in caplog.records if entry.name == "realtime.hooks"]
    assert [entry.levelno for entry in entries] == [logging.ERROR] * 4
    assert [str(entry.exc_info[1]) for entry in entries if entry.exc_info][1::2] == ["async"] * 2
    assert f"{fail.__module__}.{fail.__qualname__} of signal connected" in entries[0].message
    assert entries[0].exc_info is not None
    assert str(entries[0].exc_info[1]) == "the receiver is broken"


async def test_receiver_that_wants_to_end_the_process_ends_nothing(
    events: SiteEvents, listen: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def leave(client: Any, **_: Any) -> None:
        heard.append(client)
        raise SystemExit(1)

    listen(signals.connected, leave)

    connect(events, 1, 2)
    assert await events.drained(PATIENCE)

    assert heard == [1, 2]
    assert "Could not send signal connected to all receivers" in caplog.text


async def test_asynchronous_receiver_hears(events: SiteEvents, listen: Connect) -> None:
    heard: list[Any] = []

    async def receive(client: Any, **_: Any) -> None:
        await asyncio.sleep(0)
        heard.append((client, threading.current_thread().name))

    listen(signals.connected, receive)

    connect(events, 1, 2)
    assert await events.drained(PATIENCE)

    assert [client for client, _ in heard] == [1, 2]
    assert threading.current_thread().name not in {name for _, name in heard}


# bounds


async def test_more_than_may_wait_are_dropped_and_that_is_logged_once(
    events: SiteEvents, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.gate.clear()
    connect(events, "first")
    while not receiver.heard:
        await asyncio.sleep(0)

    connect(events, *range(MAX_EVENTS + 100))
    receiver.gate.set()
    assert await events.drained(PATIENCE)

    assert receiver.clients() == ["first", *range(MAX_EVENTS)]
    assert caplog.text.count(TOO_SLOW) == 1


async def test_receivers_at_the_limit_are_logged_once_and_not_for_every_place_that_gets_free(
    events: SiteEvents, listen: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    turns = threading.Semaphore(0)
    heard: list[Any] = []

    def receive(client: Any, **_: Any) -> None:
        assert turns.acquire(timeout=PATIENCE)
        heard.append(client)

    listen(signals.connected, receive)
    connect(events, *range(MAX_EVENTS + 2))

    for number in range(1, 10):
        turns.release()
        while len(heard) < number:
            await asyncio.sleep(0)
        connect(events, "more", "and more", "and one that finds no place")

    assert caplog.text.count(TOO_SLOW) == 1
    turns.release(2 * MAX_EVENTS)
    assert await events.drained(PATIENCE)


async def test_receivers_that_keep_up_again_hear_again_and_the_log_says_how_many_they_missed(
    events: SiteEvents, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.gate.clear()
    connect(events, "first")
    while not receiver.heard:
        await asyncio.sleep(0)
    connect(events, *range(MAX_EVENTS + 7))
    receiver.gate.set()
    assert await events.drained(PATIENCE)

    connect(events, "last")
    assert await events.drained(PATIENCE)

    assert receiver.clients()[-1] == "last"
    assert "keep up again, 7 signals were dropped" in caplog.text
    assert events.dropped == 7


# the end


async def test_what_waits_at_the_end_is_heard_and_nothing_after_it(receiver: Receiver) -> None:
    events = SiteEvents()
    connect(events, *range(1000))
    thread = signal_threads()[-1]  # another test's may still be ending
    await events.close()
    connect(events, "late")
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert receiver.clients() == [*range(1000)]


async def test_slow_receiver_does_not_keep_the_end_for_long_and_hears_no_more(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    events = SiteEvents()
    receiver.gate.clear()
    connect(events, 1, 2)
    thread = signal_threads()[-1]  # another test's may still be ending
    began = time.monotonic()

    await events.close()
    took = time.monotonic() - began
    receiver.gate.set()
    thread.join(PATIENCE)

    assert CLOSE_TIMEOUT <= took < CLOSE_TIMEOUT + PATIENCE
    assert "the last signals may be lost" in caplog.text
    assert receiver.clients() == [1]
    assert not thread.is_alive()


async def test_thread_of_a_receiver_that_never_ends_does_not_keep_the_process(
    events: SiteEvents, receiver: Receiver
) -> None:
    receiver.gate.clear()
    connect(events, 1)
    assert signal_threads()[-1].daemon
    receiver.gate.set()


async def test_node_that_stops_lets_receivers_hear_and_ends_in_time_where_they_do_not(
    clock: Clock, receiver: Receiver
) -> None:
    events = SiteEvents()
    node = Node(load({}), events=events)
    await node.start()
    receiver.gate.clear()
    connect(events, 1, 2)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert receiver.clients() == [1]


def test_documentation_has_every_signal_and_the_numbers_of_the_code() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "signals.md").read_text()
    table = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert table == list(SIGNALS)
    assert f"No more than {MAX_EVENTS} signals wait" in text
    assert CLOSE_TIMEOUT == 1  # "receivers have a second to hear it"
