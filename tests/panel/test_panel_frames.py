"""The panel's page "Frames": what the browser sends back, and the time of a frame."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from admin_panel.pages import frames
from admin_panel.people import CopiedFrame
from realtime.operators.questions import Copy


@pytest.mark.parametrize(
    "text",
    [r'{"\ud800": 1}', '{"a": ' + "9" * 30 + "}", '{"a": -1}', '{"a": true}', "[" * 100_000, ""],
    ids=["half", "large", "negative", "boolean", "deep", "nothing"],
)
def test_numbers_that_cannot_be_sent_to_nodes_are_none(text: str) -> None:
    assert frames._taken(text) == {}


def test_numbers_of_nodes_are_read() -> None:
    assert frames._taken('{"U1": 7, "U2": 0}') == {"U1": 7, "U2": 0}


@pytest.mark.parametrize(
    ("zone", "shown"), [("Asia/Tokyo", "21:00:00.500"), ("America/New_York", "07:00:00.500")]
)
def test_time_of_a_frame_is_that_of_the_operator(zone: str, shown: str) -> None:
    at = datetime(2026, 1, 5, 12, 0, 0, 500_000, tzinfo=UTC).timestamp()
    with timezone.override(zone):
        entry = frames._entry(CopiedFrame("n", Copy(1, at, "sent", "c", "", "{}")))
    assert entry.time == shown
