"""The line on every page: the verdict on the service, since when, and what is still known."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core import checks
from django.core.checks.registry import registry
from django.test import Client
from django.utils import timezone, translation
from msgspec.structs import replace

from admin_panel import health, service
from admin_panel.answering import Unavailable, answering, unanswered
from admin_panel.health import (
    SLOW_ROUND_TRIP,
    Level,
    Look,
    Seen,
    ServiceWatch,
    problems_of,
)
from admin_panel.pages.overview import totals_of
from realtime.checks import TAG
from realtime.engine.nodes import NodeStatus
from realtime.errors import EngineUnavailable
from realtime.server_api.durable import Overview
from tests.panel.paths import page_path
from tests.panel.urls import configure
from tests.unit.monitoring.counted_rows import CountedRows

FINE = NodeStatus("U1", "one", "1.0", 10, 5, 2, 60)
SILENT = NodeStatus("U2", "two", "1.0", 10, 5, 2, 60, last_seen_seconds=30, alive=False)
LATE = NodeStatus("U3", "three", "1.0", 10, 5, 2, 60, loop_lag=0.6)


class Rows:
    """The rows of durable publications that a test makes up."""

    def __init__(self, *numbers: Any) -> None:
        self._numbers = numbers

    def overview(self) -> Overview:
        return Overview(*self._numbers)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> ServiceWatch:
    monkeypatch.setattr(service, "check_messages", list)
    monkeypatch.setattr(service, "keeps_pending", lambda: False)
    return ServiceWatch()


def judge(
    watch: ServiceWatch, *nodes: NodeStatus, round_trip: float | None = 0.001
) -> health.Health:
    return watch.health(watch.saw(service.ServiceState(list(nodes), round_trip)))


def away(watch: ServiceWatch) -> health.Health:
    with pytest.raises(Unavailable) as caught, answering():
        raise EngineUnavailable("away")
    return watch.health(watch.look(failed=caught.value))


def test_node_that_does_not_answer_is_worth_a_word_before_it_counts_as_silent(
    watch: ServiceWatch,
) -> None:
    unanswered.note(["two", "one"])
    [problem] = judge(watch, FINE, SILENT).problems[1:]
    assert problem.text == "Node one did not answer a moment ago."
    watch.forget()
    assert judge(watch, FINE).level is Level.HEALTHY


VERDICTS: dict[str, tuple[list[NodeStatus], float, Level, str]] = {
    "all well": ([FINE], 0.001, Level.HEALTHY, ""),
    "silent node": ([FINE, SILENT], 0.001, Level.DEGRADED, "Node two has been silent for"),
    "late loop": ([FINE, LATE], 0.001, Level.DEGRADED, "Node three is overloaded"),
    "slow engine": ([FINE], 0.2, Level.DEGRADED, "The engine is slow"),
    "no node": ([], 0.001, Level.DOWN, "No node is running."),
    "worst first": ([SILENT], 0.2, Level.DOWN, "No node is running."),
}


@pytest.mark.parametrize(("nodes", "round_trip", "level", "text"), VERDICTS.values(), ids=VERDICTS)
def test_verdict_is_that_of_the_worst_problem(
    watch: ServiceWatch, nodes: list[NodeStatus], round_trip: float, level: Level, text: str
) -> None:
    judged = judge(watch, *nodes, round_trip=round_trip)
    assert judged.level is level
    assert (judged.worst.text if judged.worst else "").startswith(text)
    assert judged.as_of is None


def test_last_state_stays_while_redis_is_away(watch: ServiceWatch) -> None:
    assert away(watch).as_of is None
    judge(watch, FINE, SILENT)
    seen = watch.look().seen
    judged = away(watch)
    assert seen is not None
    assert (judged.level, judged.as_of) == (Level.DOWN, seen.at)
    assert watch.look().seen is seen


def test_verdict_keeps_its_beginning_until_it_changes(watch: ServiceWatch) -> None:
    first = judge(watch, FINE)
    again = judge(watch, FINE)
    down = away(watch)
    still_down = away(watch)
    back = judge(watch, FINE)

    assert not first.is_sure_of_since
    assert again.since == first.since
    assert down.is_sure_of_since
    assert first.since < down.since == still_down.since < back.since
    assert back.is_sure_of_since


def test_silence_began_with_the_last_heartbeat(watch: ServiceWatch) -> None:
    judged = judge(watch, FINE, SILENT)
    seen = watch.look().seen
    assert seen is not None
    assert 29 < (seen.at - judged.since).total_seconds() < 60
    assert judged.is_sure_of_since


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((1, 0, 0, 90.0), "A durable publication has been waiting for 1 minute, 30 seconds."),
        ((0, 0, 2, None), "2 durable publications are parked."),
    ],
)
def test_pending_rows_that_wait_or_are_parked_degrade_the_service(
    watch: ServiceWatch, monkeypatch: pytest.MonkeyPatch, numbers: Any, text: str
) -> None:
    monkeypatch.setattr(service, "keeps_pending", lambda: True)
    monkeypatch.setattr(service, "pending", lambda: Rows(*numbers))
    judged = judge(watch, FINE)
    assert judged.level is Level.DEGRADED
    assert judged.worst is not None
    assert (judged.worst.text, judged.worst.page) == (text, "pending")


def test_database_that_hangs_delays_the_line_once_and_is_told_in_the_language_of_the_page(
    watch: ServiceWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = CountedRows()
    rows.answers.clear()
    monkeypatch.setattr(service, "READ_TIMEOUT", 0.01)
    monkeypatch.setattr(service, "keeps_pending", lambda: True)
    monkeypatch.setattr(service, "pending", lambda: rows)
    try:
        english = judge(watch, FINE)
        with translation.override("de"):
            german = judge(watch, FINE)
    finally:
        rows.answers.set()

    assert (english.level, german.level, rows.questions) == (Level.DEGRADED, Level.DEGRADED, 1)
    assert english.worst is not None
    assert german.worst is not None
    assert english.worst.text == "Durable publications cannot be read."
    assert german.worst.text != english.worst.text


def test_one_page_looks_while_others_go_on_with_what_is_known(
    watch: ServiceWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, answers = threading.Event(), threading.Event()
    looks = []

    def state() -> service.ServiceState:
        looks.append(1)
        begun.set()
        assert answers.wait(10)
        return service.ServiceState([FINE], 0.001)

    monkeypatch.setattr(service, "state", state)
    with ThreadPoolExecutor() as pages:
        first = pages.submit(watch.look)
        assert begun.wait(10)
        others = [pages.submit(watch.look) for _ in range(2)]
        answers.set()
        seen = {id(page.result(10)) for page in (first, *others)}
        watch._looks._seconds = 0
        known = watch._looks.keep(first.result())  # which is too old now
        begun.clear()
        answers.clear()
        again = pages.submit(watch.look)
        assert begun.wait(10)
        meanwhile = watch.look()
        answers.set()

        assert again.result(10) is not known
    assert (len(seen), len(looks)) == (1, 2)
    assert meanwhile is known


def test_check_that_raises_is_a_finding_and_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @checks.register(TAG)
    def fails(**_: Any) -> list[checks.CheckMessage]:
        raise ValueError("a secret")

    @checks.register(TAG)
    def warns(**_: Any) -> list[checks.CheckMessage]:
        return [checks.Warning("another one")]

    try:
        messages = [message.msg for message in service.check_messages()]
        judged = judge(ServiceWatch(), FINE)
    finally:
        registry.registered_checks -= {fails, warns}

    assert "A system check could not be made: it raised ValueError." in messages
    assert "another one" in messages
    assert "a secret" not in "".join(messages)
    assert "a secret" in caplog.text
    assert "checks" in [problem.key for problem in judged.problems]


@pytest.fixture
def _redis_is_away(settings: Any) -> None:
    configure(settings, redis_url="redis://127.0.0.1:1/0")


@pytest.mark.django_db
@pytest.mark.usefixtures("_redis_is_away")
@pytest.mark.parametrize("page", ["overview", "publication", "namespaces", "console"])
def test_every_page_has_the_verdict_also_without_the_service(
    admin_client: Client, page: str
) -> None:
    html = admin_client.get(page_path(page)).content.decode()
    line = html.partition('class="panel-health"')[2].partition("</p>")[0]
    assert 'data-level="down"' in line
    assert "<strong>Down</strong>" in line
    assert "Redis cannot be reached." in line


@pytest.mark.django_db
@pytest.mark.usefixtures("_redis_is_away")
def test_nothing_is_done_or_lost_while_redis_is_away(admin_client: Client) -> None:
    form = {"channel": "news", "data": '"kept"'}
    publication = admin_client.post(page_path("publication"), form)
    others = [
        admin_client.get(page_path("channel", channel="news")),
        admin_client.post(page_path("user/disconnect", user="17")),
        admin_client.post(page_path("console"), {"method": "channels", "params": ""}),
    ]

    pages = [each.content.decode() for each in (publication, *others)]
    assert [each.status_code for each in others] == [503, 503, 503]
    assert ["Redis cannot be reached" in page for page in pages] == [True] * 4
    assert "&quot;kept&quot;" in pages[0]
    assert '<bdi class="panel-name">news</bdi>' in pages[1]
    assert "channel-tail" not in pages[1]
    assert not LogEntry.objects.exists()


# what the overview warns of, and what it sums up


GONE = replace(FINE, name="two", version="0.9", last_seen_seconds=12.6, alive=False)

WARNINGS: dict[str, tuple[list[NodeStatus], float | None, list[str]]] = {
    "all is well": ([FINE, replace(FINE, name="two")], 0.001, []),
    "memory engine": ([FINE], None, []),
    "no node": ([], 0.001, ["No node is running."]),
    "Redis at the limit": ([FINE], SLOW_ROUND_TRIP, []),
    "slow engine": ([FINE], 0.0834, ["The engine is slow: a round trip takes 83 ms."]),
    "silent node, its version no matter": (
        [FINE, GONE],
        0.001,
        ["Node two has been silent for 12 seconds."],
    ),
    "different versions": (
        [FINE, replace(FINE, name="two", version="0.9")],
        0.001,
        ["The nodes run 2 different versions: 0.9, 1.0."],
    ),
}


@pytest.mark.parametrize(("nodes", "round_trip", "expected"), WARNINGS.values(), ids=WARNINGS)
def test_overview_warns_of(
    nodes: list[NodeStatus], round_trip: float | None, expected: list[str]
) -> None:
    look = Look(Seen(timezone.now(), service.ServiceState(nodes, round_trip)), None)
    assert [problem.text for problem in problems_of(look)] == expected


def test_node_that_is_gone_is_in_no_sum() -> None:
    nodes: list[NodeStatus] = [FINE, replace(FINE, name="three", num_clients=1), GONE]
    assert totals_of(nodes) == (2, 1, 11, 10, 4)
