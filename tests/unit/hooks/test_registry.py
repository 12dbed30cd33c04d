"""Registering functions: by kind, by channel pattern, by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from realtime import hooks
from realtime.hooks import registry as module
from realtime.hooks.registry import Registry, registry


def one(request: object) -> None: ...
def two(request: object) -> None: ...


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Leave the registry of the process as it was."""
    before = (
        dict(registry.single),
        list(registry.subscribe),
        list(registry.publish),
        dict(registry.methods),
    )
    for entries in (registry.single, registry.subscribe, registry.publish, registry.methods):
        entries.clear()
    yield
    registry.single, registry.subscribe, registry.publish, registry.methods = before


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
