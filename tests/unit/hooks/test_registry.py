"""Registering functions: by kind, by channel pattern, by method."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime import hooks
from realtime.hooks import registry as module
from realtime.hooks.patterns import Pattern
from realtime.hooks.registry import Registry, registry
from tests.unit.parts import quickly


def one(request: object) -> None: ...
def two(request: object) -> None: ...


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Leave the registry of the process as it was."""
    before = (
        dict(registry.single),
        list(registry.subscribe),
        list(registry.publish),
        list(registry.map_put),
        dict(registry.methods),
    )
    registry.map_put.clear()
    for entries in (registry.single, registry.subscribe, registry.publish, registry.methods):
        entries.clear()
    yield
    (
        registry.single,
        registry.subscribe,
        registry.publish,
        registry.map_put,
        registry.methods,
    ) = before


def test_empty_registry_is_false() -> None:
    assert not Registry()


@pytest.mark.parametrize("kind", ["connect", "refresh", "info", "message"])
def test_decorator_registers_the_function_of_a_kind_and_returns_it(kind: str) -> None:
    assert getattr(hooks, kind)(one) is one
    assert registry.single == {kind: one}
    assert registry


def test_last_function_of_a_kind_wins() -> None:
    hooks.connect(one)
    hooks.connect(two)
    assert registry.single["connect"] is two


@pytest.mark.parametrize("kind", ["subscribe", "publish"])
def test_decorator_with_patterns_returns_the_function(kind: str) -> None:
    assert getattr(hooks, kind)("a:*", "b:{x}")(one) is one
    entries = getattr(registry, kind)
    assert registry.find(entries, "a:1") == (one, {})
    assert registry.find(entries, "b:1") == (one, {"x": "1"})
    assert registry.find(entries, "c:1") is None


def test_subscribe_and_publish_are_registered_apart() -> None:
    hooks.subscribe("a:*")(one)
    assert registry.find(registry.publish, "a:1") is None


def test_first_pattern_that_matches_wins() -> None:
    hooks.subscribe("a:b")(one)
    hooks.subscribe("a:*")(two)
    assert registry.find(registry.subscribe, "a:b") == (one, {})
    assert registry.find(registry.subscribe, "a:c") == (two, {})


def test_same_pattern_again_replaces_the_function_in_its_place() -> None:
    hooks.subscribe("a:*")(one)
    hooks.subscribe("*")(one)
    hooks.subscribe("a:*")(two)
    assert registry.find(registry.subscribe, "a:1") == (two, {})
    assert registry.find(registry.subscribe, "b:1") == (one, {})


def test_method_is_named_as_its_function() -> None:
    assert hooks.rpc(one) is one
    assert registry.methods == {"one": one}


def test_method_is_named_as_given() -> None:
    assert hooks.rpc("room.members")(one) is one
    assert registry.methods == {"room.members": one}


MISTAKES: dict[str, Callable[[Any], object]] = {
    "subscribe without patterns": lambda kind: getattr(hooks, kind)(one),
    "subscribe with no pattern": lambda kind: getattr(hooks, kind)(),
    "pattern that is no text": lambda kind: getattr(hooks, kind)("a", 1),
}


@pytest.mark.parametrize("kind", ["subscribe", "publish"])
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_decorator_without_patterns_is_a_mistake_and_guards_nothing_silently(
    mistake: Callable[[Any], object], kind: str
) -> None:
    with pytest.raises(TypeError, match="patterns"):
        mistake(kind)


def test_method_that_is_no_text_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="name"):
        hooks.rpc(17)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", sorted(module.__dict__.keys() & set(hooks.__all__)))
def test_public_decorators_are_documented(name: str) -> None:
    assert getattr(hooks, name).__doc__


# patterns of channel names, as `@hooks.subscribe` and `@hooks.publish` take them


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
