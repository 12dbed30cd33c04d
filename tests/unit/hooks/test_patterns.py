"""Patterns of channel names, as `@hooks.subscribe` and `@hooks.publish` take them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.hooks.patterns import Pattern
from tests.unit.parts import quickly

MATCHES = [
    ("news", "news", {}),
    ("*", "anything:at#all", {}),
    ("*", "", {}),
    ("chat:*", "chat:", {}),
    ("chat:*", "chat:a:b", {}),
    ("*:lobby", "chat:lobby", {}),
    ("room:{room}", "room:kitchen", {"room": "kitchen"}),
    ("room:{room}", "room:a#17,18", {"room": "a#17,18"}),
    ("{place}:{room}", "house:kitchen", {"place": "house", "room": "kitchen"}),
    ("room:{room}:*", "room:kitchen:north:1", {"room": "kitchen"}),
    ("$room:{room}", "$room:kitchen", {"room": "kitchen"}),
    ("room:{r1_}-{r2}", "room:a-b", {"r1_": "a", "r2": "b"}),
    ("a.b+(c)[d]", "a.b+(c)[d]", {}),
    ("a*b", "a\nb", {}),
]


@pytest.mark.parametrize(("pattern", "channel", "params"), MATCHES)
def test_pattern_matches_and_gives_its_params(
    pattern: str, channel: str, params: dict[str, str]
) -> None:
    assert Pattern(pattern).match(channel) == params


OTHERS = [
    ("news", "newsletter"),
    ("news", "my-news"),
    ("news", "News"),
    ("chat:*", "chat"),
    ("chat:*", "$chat:staff"),
    ("room:{room}", "room:"),
    ("room:{room}", "room:a:b"),
    ("room:{room}", "rooms:a"),
    ("room:{room}", "room:a\nroom:b:c"),
    ("a.b", "axb"),
    ("a*b", "a"),
]


@pytest.mark.parametrize(("pattern", "channel"), OTHERS)
def test_pattern_does_not_match(pattern: str, channel: str) -> None:
    assert Pattern(pattern).match(channel) is None


@pytest.mark.parametrize(
    "pattern",
    ["", "room:{}", "room:{room", "room:room}", "room:{room id}", "room:{7}", "{a}:{a}", "{{a}}"],
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Pattern(pattern)


@quickly
@given(st.text(st.characters(codec="ascii", exclude_characters="*{}"), min_size=1))
def test_text_without_signs_matches_itself_alone(text: str) -> None:
    pattern = Pattern(text)
    assert pattern.match(text) == {}
    assert pattern.match(text + "x") is None


@quickly
@given(
    st.lists(
        st.sampled_from(["*", "{}", "a", "b", ".", ":", "\\", "[", "^"]), min_size=1, max_size=7
    ),
    st.text("a.:\\[^b", max_size=10),
)
def test_star_is_any_text_and_a_name_one_without_colon(parts: list[str], channel: str) -> None:
    pattern, expected = "", ""
    for number, part in enumerate(parts):
        pattern += f"{{n{number}}}" if part == "{}" else part
        if part == "{}":
            expected += f"(?P<n{number}>[^:]+)"
        else:
            expected += ".*" if part == "*" else re.escape(part)
    found = re.fullmatch(expected, channel, re.DOTALL)

    assert Pattern(pattern).match(channel) == (found and found.groupdict())


@pytest.mark.parametrize(
    ("pattern", "channel"),
    [
        ("*" * 200 + "b", "a" * 255),
        ("a" + "*:" * 20 + "x", "a" + ":" * 250 + "y"),
        ("r:" + "-".join(f"{{n{number}}}" for number in range(20)), "r:" + "-" * 252 + ":"),
        ("*a" * 20 + "{name}b", "a" * 255),
    ],
    ids=["stars in a row", "stars", "names", "both"],
)
def test_many_parts_do_not_make_a_name_take_long(pattern: str, channel: str) -> None:
    # each part tried at every place of the name would never end
    assert Pattern(pattern).match(channel) is None
