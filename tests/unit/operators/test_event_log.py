"""The event log: equal events are one, and a storm of one kind pushes out no others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from realtime import logs
from realtime.operators.event_log import KEPT_OF_A_KIND, MAX_TEXT, TOGETHER, EventLog
from realtime.operators.questions import Event


class Now:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def log(now: Now) -> EventLog:
    return EventLog(now)


@pytest.fixture
def watched(log: EventLog) -> Iterator[EventLog]:
    """A log that sees the records of the service."""
    logs.watch(log.on_record)
    yield log
    logs.unwatch(log.on_record)


def told(log: EventLog) -> list[tuple[str, str, int]]:
    return [(event.kind, event.text, event.count) for event in log.events()]


def test_events_are_told_in_the_order_in_which_they_began(log: EventLog, now: Now) -> None:
    log.add("redis_away")
    now.seconds += 5
    log.add("redis_back")
    now.seconds += 5
    log.add("node_started", "web-2", subject="U2")
    assert [(event.kind, event.first, event.subject) for event in log.events()] == [
        ("redis_away", 1_000_000.0, ""),
        ("redis_back", 1_000_005.0, ""),
        ("node_started", 1_000_010.0, "U2"),
    ]


def test_equal_events_within_a_minute_are_one(log: EventLog, now: Now) -> None:
    log.add("refused", number=3)
    now.seconds += TOGETHER - 1
    log.add("refused", number=4)
    now.seconds += 1
    log.add("refused", number=5)
    first, second = log.events()
    assert first == Event("refused", 1_000_000.0, 1_000_000.0 + TOGETHER - 1, 2, number=7.0)
    assert (second.count, second.number) == (1, 5)


def test_lag_has_the_greatest_of_its_numbers(log: EventLog) -> None:
    for number in (700, 900, 800):
        log.add("late_loop", number=number)
    assert [(event.count, event.number) for event in log.events()] == [(3, 900)]


def test_storm_of_one_kind_pushes_out_no_other(log: EventLog, now: Now) -> None:
    log.add("node_silent", "web-2", subject="U2")
    for number in range(10 * KEPT_OF_A_KIND):
        log.add("blocked", f"user {number}", subject=f"user {number}")
    now.seconds += 1
    log.add("blocked", "user 0", subject="user 0")
    kinds = [event.kind for event in log.events()]
    assert kinds.count("blocked") == KEPT_OF_A_KIND
    assert kinds.count("node_silent") == 1
    assert log.events()[-1].text == "user 0"


def test_warnings_and_errors_of_the_service_are_events(watched: EventLog) -> None:
    logging.getLogger("realtime.node").warning("Heartbeat failed: %s", "no answer")
    logging.getLogger("realtime.hooks").error("%s failed", "shop.may_subscribe")
    logging.getLogger("realtime.node").info("Client C went")
    logging.getLogger("django.request").error("Not Found")
    assert sorted(told(watched)) == [
        ("error", "shop.may_subscribe failed", 1),
        ("warning", "Heartbeat failed: no answer", 1),
    ]


def test_lines_of_one_template_are_one_event(watched: EventLog) -> None:
    for number in range(1000):
        logging.getLogger("realtime.client").warning("Refresh of client %s failed", number)
    assert told(watched) == [("warning", "Refresh of client 0 failed", 1000)]


def test_line_is_cut_and_one_with_wrong_arguments_harms_nothing(log: EventLog) -> None:
    for text, arguments in (("x" * 1000, ()), ("%d of %d", ("one",))):
        log.on_record(logging.LogRecord("realtime.node", 40, "", 1, text, arguments, None))
    assert {text for _, text, _ in told(log)} == {"x" * MAX_TEXT, "%d of %d"}


def test_log_is_told_to_nobody_after_the_end(log: EventLog) -> None:
    logs.watch(log.on_record)
    logs.unwatch(log.on_record)
    logging.getLogger("realtime.node").warning("Heartbeat failed")
    assert log.events() == []


def test_threads_may_add_events(log: EventLog) -> None:
    def add() -> None:
        for _ in range(500):
            log.add("refused", number=1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(event.count, event.number) for event in log.events()] == [(2000, 2000)]
