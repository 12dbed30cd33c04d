"""Event IDs: positions there and back, their size, and whatever else may come as one."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol import event_ids
from realtime.protocol.messages import UINT64_MAX, StreamPosition

AT_SEVEN = StreamPosition(7, "c0ffee")

names = st.text(min_size=1, max_size=255)
positions = st.none() | st.builds(
    StreamPosition,
    st.integers(0, UINT64_MAX),
    st.from_regex(r"[0-9a-f]{1,16}(-[0-9a-f]{8})?", fullmatch=True),
)


@given(st.dictionaries(names, positions, min_size=1, max_size=64))
def test_position_of_every_channel_comes_back(
    known: dict[str, StreamPosition | None],
) -> None:
    assert event_ids.decode(event_ids.encode(known), known) == known


def test_stands_in_an_address_as_it_is() -> None:
    known = {"a&b=c#%~": StreamPosition(1, "f-0"), "left": None}
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", event_ids.encode(known))


def test_of_64_channels_fits_a_header() -> None:
    known = {
        f"{number:a<255}": StreamPosition(10**9, "f" * 16 + "-12345678") for number in range(64)
    }
    assert len(event_ids.encode(known)) < 4096


def test_of_other_channels_says_nothing() -> None:
    text = event_ids.encode({"news": AT_SEVEN, "other": StreamPosition(1, "e")})
    assert event_ids.decode(text, ["news", "weather"]) == {"news": AT_SEVEN}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "~",
        "end",
        "news",
        "AAAAAAAA.",
        "AAAAAAAA.1",
        "AAAAAAAA.-1.e",
        "AAAAAAAA.1.e~",
        "AAAAAAAA.18446744073709551616.e",
        "AAAAAAAA.\u0661.e",
        "AAAAAAAA.1.e\n",
        "AAAAAAAA.1." + "e" * 65,
        "AAAAAAAA~" * 2000 + "AAAAAAAA",
        "\ud83d",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ID"):
        event_ids.decode(text, ["news"])


@given(st.text(max_size=300))
def test_no_text_is_more_than_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert event_ids.decode(text, ["news"]) in ({}, {"news": None})
