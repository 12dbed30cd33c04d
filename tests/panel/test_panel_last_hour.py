"""The last hour on the pages: charts, their words for screen readers, marks, events."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from admin_panel import audit, health, past, service
from admin_panel.answering import answering
from admin_panel.health import Remembered
from admin_panel.operators import UserOperator
from admin_panel.pages import events, overview
from realtime.cluster.survey import SurveyResult
from realtime.engine.nodes import NodeStatus
from realtime.errors import EngineUnavailable
from realtime.operators.questions import SLOT_SECONDS, Event, PastAnswer
from tests.panel.past_parts import answer
from tests.panel.paths import page_path

pytestmark = pytest.mark.django_db

MARKUP = "<script>hit()</script> & \"quoted\" '%s'"
STATUS = NodeStatus("U1", "node U1", "1.0", 3, 2, 1, 357, num_subs=4)

Given = Callable[..., None]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Lets the service have these nodes, which answer so."""

    def given(*answers: PastAnswer, missing: tuple[str, ...] = (), nodes: int = 1) -> None:
        statuses = [STATUS, NodeStatus("U2", "node U2", "1.0", 3, 2, 1, 360)][:nodes]
        monkeypatch.setattr(service, "state", lambda: service.ServiceState(statuses, 0.001))
        monkeypatch.setattr(service, "past", lambda: SurveyResult(list(answers), list(missing)))
        health.watch.forget()
        past.memory.forget()

    return given


def last() -> int:
    return int(timezone.now().timestamp()) // SLOT_SECONDS


def now(*events: Event, uid: str = "U1", **figures: Any) -> PastAnswer:
    """An answer of this moment, with six samples."""
    newest = last()
    return answer(
        uid,
        range(newest - 5, newest + 1),
        now=timezone.now().timestamp(),
        events=events,
        **figures,
    )


def happened(kind: str, text: str = "", subject: str = "", *, number: float = 0) -> Event:
    at = timezone.now().timestamp() - 30
    return Event(kind, at, at, 1, text, subject, number)


def page(client: Client, name: str = "overview", *, status: int = 200, **query: object) -> str:
    response = client.get(page_path(name, **query))
    assert response.status_code == status
    return response.content.decode()


def chart(content: str, name: str) -> str:
    return content.partition(f'data-chart="{name}"')[2].partition("</figure>")[0]


def test_charts_are_there_at_once_with_their_values_in_words(
    admin_client: Client, given: Given
) -> None:
    given(now(published=[10, 20, 30, 40, 50, 60], connections=3))
    content = page(admin_client)
    words = re.search(r'aria-label="([^"]*)"', chart(content, "published"))
    assert words is not None
    assert words[1].startswith("published per second: now 6, highest 6 at ")
    assert words[1].endswith(", lowest 1, on average 3.50; gaps: 0.")
    assert '<output aria-live="off">3</output>' in chart(content, "connections")
    assert chart(content, "published").count('<path class="line"') == 1


def test_hour_is_a_table_too(admin_client: Client, given: Given) -> None:
    given(now(connections=3))
    table = page(admin_client).partition('id="hour-table"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", table)
    assert len(rows) == 12
    assert rows[0].count(">\N{EN DASH}<") == 8
    assert ">3<" in rows[-1]


def test_node_that_does_not_answer_is_named_and_no_zero(admin_client: Client, given: Given) -> None:
    given(now(connections=3), missing=("node U2",), nodes=2)
    content = page(admin_client)
    assert 'The node <bdi class="panel-name">node U2</bdi> does not answer: its part' in content
    assert '<output aria-live="off">3</output>' in chart(content, "connections")


def test_without_any_answer_the_charts_are_empty_and_say_so(
    admin_client: Client, given: Given
) -> None:
    given(missing=("node U1",))
    content = page(admin_client)
    assert "<path" not in chart(content, "published")
    assert 'aria-label="published per second: no samples."' in content


def test_events_are_marks_with_a_list_that_names_them(admin_client: Client, given: Given) -> None:
    given(
        now(happened("redis_away"), happened("warning", "Heartbeat failed")),
    )
    content = page(admin_client)
    marks = content.partition('class="panel-marks"')[2].partition("</ol>")[0]
    assert "The engine was lost." in marks
    assert "Heartbeat failed" not in marks
    assert chart(content, "delivered").count('class="mark serious"') == 1


def test_last_hour_stays_while_redis_is_away(
    admin_client: Client, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "REMEMBERED", 0.0)
    given(now(connections=3))
    page(admin_client)

    def away() -> None:
        with answering():
            raise EngineUnavailable("away")

    monkeypatch.setattr(service, "state", away)
    monkeypatch.setattr(service, "past", away)
    health.watch.forget()

    content = page(admin_client, status=503)
    assert '<output aria-live="off">3</output>' in chart(content, "connections")
    assert '<div id="overview-hour" class="panel-past">' in content
    assert page(admin_client, "events", status=503)


def test_rows_of_nodes_lead_to_the_page_of_the_node(admin_client: Client, given: Given) -> None:
    given(now(happened("redis_away"), connections=3), now(uid="U2", connections=5), nodes=2)

    link = page_path("node", node="U2")
    assert f'href="{link}"' in page(admin_client)
    content = page(admin_client, "node", node="U2")
    assert '<output aria-live="off">5</output>' in chart(content, "connections")
    assert 'data-chart="memory"' in content
    assert 'data-chart="commands"' in content
    assert "Running for 6 minutes, version 1.0." in content
    assert "The engine was lost." not in content


def test_node_that_is_not_listed_is_not_found(admin_client: Client, given: Given) -> None:
    given(now())
    assert "No node with this ID is listed." in page(admin_client, "node", status=404, node="U9")


def test_totals_that_may_count_twice_say_at_most(admin_client: Client, given: Given) -> None:
    given(now())
    assert "at most" not in page(admin_client)
    given(now(), now(uid="U2"), nodes=2)
    assert page(admin_client).count("<small>at most</small>") == 2


def test_users_who_are_online_count_once_however_many_nodes_have_them(
    admin_client: Client, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_online", Remembered(0.0, lambda: 1234))
    given(now(), now(uid="U2"), nodes=2)
    content = page(admin_client)
    tile = content.partition('id="users-online"')[2].partition("</div>")[0]
    assert f'<a href="{page_path("user")}">Users online</a>' in tile
    assert "<dd>1,234</dd>" in tile
    assert content.count("<small>at most</small>") == 1


def test_online_users_are_not_counted_where_that_means_to_read_many_names(
    admin_client: Client, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count() -> int:
        raise AssertionError("too many to be counted")

    monkeypatch.setattr(overview, "COUNTED", 1)
    monkeypatch.setattr(overview, "_online", Remembered(0.0, count))
    given(now())

    assert 'id="users-online"' not in page(admin_client)


# the page of events


def rows(content: str) -> list[str]:
    """What happened, in the rows of the page."""
    body = content.partition('id="events"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        html.unescape(text)
        for text in re.findall(r'class="panel-event"[^>]*><bdi>(.*?)</bdi>', body, re.S)
    ]


SENTENCES = {
    "node_started": "Node X started.",
    "node_stopped": "Node X stopped. Its samples went with it.",
    "node_silent": "Node X fell silent. Its samples are missing until it answers.",
    "node_back": "Node X answers again.",
    "redis_away": "The engine was lost.",
    "redis_back": "The engine is back.",
    "mass_disconnect": "1,200 connections ended at about the same time.",
    "slow_clients": "1,200 clients were closed because they did not read fast enough.",
    "refused": "1,200 connections were refused, because of a limit or of overload.",
    "late_loop": "The event loop was late by up to 1,200 ms.",
    "blocked": "User X was blocked.",
    "unblocked": "User X is blocked no longer.",
    "warning": "X",
    "error": "X",
    "of_a_newer_version": "X",
}


def test_every_kind_has_a_sentence(admin_client: Client, given: Given) -> None:
    given(now(*(happened(kind, "X", "X", number=1200) for kind in SENTENCES)))
    assert sorted(rows(page(admin_client, "events"))) == sorted(SENTENCES.values())


def test_events_are_chosen_by_kind_and_text(admin_client: Client, given: Given) -> None:
    given(
        now(
            happened("error", "shop.may_subscribe failed"),
            happened("error", "Background task failed"),
            happened("warning", "Heartbeat failed"),
        )
    )

    assert len(rows(page(admin_client, "events"))) == 3
    assert rows(page(admin_client, "events", kind="warnings")) == ["Heartbeat failed"]
    assert rows(page(admin_client, "events", kind="errors", q="TASK")) == ["Background task failed"]
    assert "No event matches." in page(admin_client, "events", q="nothing like it")


def test_what_operators_did_is_among_the_events_with_who_did_it(
    admin_client: Client, given: Given
) -> None:
    operator = UserOperator(User.objects.create_user("ada"))
    operator.log(audit.PUBLISH, ["a", "b", "c", "d"], '{"secret": 1}')
    operator.log(audit.DISCONNECT, ["17"])
    operator.log(audit.BLOCK, [MARKUP], "5 minutes")
    long_ago = operator.log(audit.REMOVE_HISTORY, ["a"])
    LogEntry.objects.filter(pk=long_ago.pk).update(
        action_time=timezone.now() - events.ACTS_SHOWN_FOR - timedelta(minutes=1)
    )
    given(now(happened("redis_away")))

    acts = [f"Blocked: {MARKUP}", "Disconnected: 17", "Published: a, b, c and 1 more"]
    content = page(admin_client, "events")
    assert rows(content) == [*acts, "The engine was lost."]
    assert content.count(page_path("log", operator="ada")) == len(acts)
    assert "secret" not in content
    assert rows(page(admin_client, "events", kind="operators", q="ADA")) == acts


@pytest.mark.parametrize(("target", "told"), [(audit.ALL, "all parked publications"), ("a", "a")])
def test_act_on_all_parked_publications_is_said_in_words(
    admin_client: Client, given: Given, target: str, told: str
) -> None:
    UserOperator(User.objects.create_user("ada")).log(audit.RETRY, [target])
    given(now())
    assert rows(page(admin_client, "events")) == [f"Retried: {told}"]


def test_acts_of_operators_are_known_without_the_service(admin_client: Client) -> None:
    UserOperator(User.objects.create_user("ada")).log(audit.DISCONNECT, ["17"])
    assert rows(page(admin_client, "events", status=503)) == ["Disconnected: 17"]


@pytest.mark.parametrize("name", ["overview", "events", "node"])
def test_names_and_lines_are_text(admin_client: Client, given: Given, name: str) -> None:
    given(now(happened("error", MARKUP), happened("node_silent", MARKUP, "U3")))
    content = page(admin_client, name, node="U1", kind="", q="")
    assert "<script>hit" not in content
    assert html.escape(MARKUP) in content
