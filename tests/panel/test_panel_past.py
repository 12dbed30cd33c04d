"""The past of the service: what the samples and events of several nodes make together."""

from __future__ import annotations

import time

import pytest
from django.test import override_settings

from admin_panel import service
from admin_panel.charts import path, scale_of, ticks, values_of
from admin_panel.measures import Measure, rate, state
from admin_panel.past import OPTIONS_CHANGED, SHOWN, _Memory
from realtime.cluster.survey import SurveyResult
from realtime.operators.questions import PastAnswer
from tests.panel.past_parts import LAST, NOW, answer, event, past

CLIENTS = Measure("clients", state("connections"))
PUBLISHED = Measure("published", rate("published"))
LAG = Measure("lag", state("lag"), over=max)


def test_figures_of_nodes_are_added_up_and_of_lag_the_worst_counts() -> None:
    both = past(
        answer("U1", connections=3, published=20, lag=7),
        answer("U2", connections=4, published=30, lag=5),
    )
    assert values_of(both, CLIENTS)[LAST] == 7
    assert values_of(both, PUBLISHED)[LAST] == 5
    assert values_of(both, LAG)[LAST] == 7


def test_what_was_not_sampled_has_no_value() -> None:
    seen = past(answer(slots=[LAST - 9, LAST - 8, LAST], connections=3))
    assert values_of(seen, CLIENTS) == {LAST - 9: 3, LAST - 8: 3, LAST: 3}
    assert not seen.partial


def test_rate_is_that_of_the_time_which_the_sample_covers() -> None:
    late = answer(slots=[LAST - 9, LAST], published=[10, 90])
    late.samples["span"] = [10_000, 45_000]
    assert values_of(past(late), PUBLISHED) == {LAST - 9: 1, LAST: 2}


def test_sum_without_a_node_that_ran_is_partial() -> None:
    both = past(
        answer("U1", connections=3),
        answer("U2", slots=[LAST - 5, LAST - 4, LAST], connections=4),
    )
    assert both.partial == {LAST - 3, LAST - 2, LAST - 1}
    assert values_of(both, CLIENTS)[LAST - 3] == 3


def test_node_that_started_since_makes_no_earlier_sum_partial() -> None:
    both = past(answer("U1", connections=3), answer("U2", slots=[LAST - 1, LAST], connections=4))
    assert not both.partial
    assert [values_of(both, CLIENTS)[slot] for slot in (LAST - 2, LAST - 1)] == [3, 7]


def test_samples_of_a_clock_that_is_wrong_are_moved() -> None:
    wrong = answer("U2", slots=[LAST - 31, LAST - 30], now=NOW.timestamp() - 300, connections=4)
    both = past(answer("U1", slots=[LAST - 1, LAST], connections=3), wrong)
    assert values_of(both, CLIENTS) == {LAST - 1: 7, LAST: 7}


def test_samples_that_are_older_than_an_hour_are_not_shown() -> None:
    seen = past(answer(slots=range(LAST - SHOWN - 3, LAST - SHOWN + 2), connections=1))
    assert sorted(values_of(seen, CLIENTS)) == [LAST - SHOWN, LAST - SHOWN + 1]


def test_ends_are_counted_by_their_codes() -> None:
    seen = past(answer("U1", closed__0=1, closed__3012=5), answer("U2", closed__3012=1))
    assert seen.closed() == [("3012", 36), ("0", 6)]


# events


def test_what_every_node_sees_is_one_event_and_what_each_lives_through_is_not() -> None:
    gone = event("node_silent", 20, "node U3", "U3")
    later = event("node_silent", 15, "node U3", "U3")
    both = past(
        answer("U1", events=(gone, event("redis_away", 9))),
        answer("U2", events=(later, event("redis_away", 8))),
    )

    assert [(each.event.kind, each.nodes) for each in both.events] == [
        ("redis_away", ("node U2",)),
        ("redis_away", ("node U1",)),
        ("node_silent", ("node U1", "node U2")),
    ]


def test_same_event_again_after_a_while_is_another_one() -> None:
    first, again = (event("node_silent", at, "node U3", "U3") for at in (300, 10))
    both = past(answer("U1", events=(first, again)), answer("U2", events=(first, again)))
    assert [each.nodes for each in both.events] == [("node U1", "node U2")] * 2


def test_node_with_other_options_than_the_one_before_it_is_an_event() -> None:
    nodes = past(
        answer("U1", started=1, options="a"),
        answer("U2", started=2, options="a"),
        answer("U3", started=3, options="b"),
    )
    assert [(each.event.kind, each.event.text, each.event.first) for each in nodes.events] == [
        (OPTIONS_CHANGED, "node U3", 3)
    ]


# drawing


def test_line_never_joins_what_was_not_sampled() -> None:
    values = {0: 0.0, 1: 10.0, 5: 5.0, 8: 10.0, 9: 0.0}
    assert path(range(10), values, 10) == ("M0 100.0h0L1 0.0M5 50.0h0M8 0.0h0L9 100.0")


@pytest.mark.parametrize(
    ("greatest", "top"), [(0, 1), (1, 1), (1.1, 2), (4, 5), (5.01, 10), (101, 200), (4200, 5000)]
)
def test_scale_ends_at_a_round_number(greatest: float, top: float) -> None:
    assert scale_of(greatest) == top


@override_settings(TIME_ZONE="Asia/Kolkata")
def test_times_are_round_ones_of_the_site_at_their_places() -> None:
    at = NOW.replace(second=0)
    found = [(tick.place, tick.text) for tick in ticks(at)]
    assert found == [("25.00", "16:45"), ("50.00", "17:00"), ("75.00", "17:15")]


# what this process remembers


def test_nodes_are_asked_once_for_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask() -> SurveyResult[PastAnswer]:
        asked.append(time.monotonic())
        return SurveyResult([answer()], ["gone"])

    monkeypatch.setattr(service, "past", ask)
    memory = _Memory()

    assert [memory.read().missing for _ in range(3)] == [["gone"]] * 3
    assert len(asked) == 1
