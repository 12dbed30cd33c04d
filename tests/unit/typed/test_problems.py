"""System checks of typed channels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import realtime
from tests.unit.checks.system_checks import SECURE, found, ids
from tests.unit.typed.shop import Changed, Comment, Payment, Place, Rating, Shipped


def mistakes(**options: Any) -> list[str]:
    """What the checks say about typed channels."""
    namespaces = [{"name": name} for name in ("orders", "stock")]
    messages = found(**{**SECURE, "namespaces": namespaces, **options})
    typed = [message for message in messages if message.id in ("realtime.E052", "realtime.W056")]
    ids(typed)  # each has a hint
    return [f"{(message.id or '')[-4:]} {message.msg}" for message in typed]


def test_good_declarations_are_no_mistake() -> None:
    realtime.channel("news", sends=str)
    realtime.channel("orders:all", sends=Changed)
    realtime.channel("orders:{pk}", sends=Changed | Shipped, accepts=Comment)
    realtime.channel("orders:*", sends=Rating | Payment | Place)
    realtime.channel("$orders:{pk}", sends=Comment | Place)
    realtime.channel("*", sends=str)
    assert mistakes() == []


@pytest.mark.parametrize(
    ("earlier", "later", "is_mistake"),
    [
        ("orders:{pk}", "orders:{pk}", True),
        ("orders:{pk}", "orders:{id}", True),
        ("orders:*", "orders:{pk}", True),
        ("orders:{pk}", "orders:all", True),
        ("*", "news", True),
        ("orders:*", "orders:*:*", True),
        ("*:*", "{place}:{pk}", True),
        ("orders:all", "orders:{pk}", False),
        ("orders:{pk}:*", "orders:*", False),
        ("orders:*:*", "orders:*", False),
        ("orders:{pk}*", "orders:*", False),
        ("orders:{pk}", "orders:*", False),
        ("orders:{pk}", "stock:{pk}", False),
        ("orders:{pk}", "orders:{pk}:{part}", False),
    ],
)
def test_declaration_that_is_never_used_is_found(
    earlier: str, later: str, is_mistake: bool
) -> None:
    realtime.channel(earlier, sends=Changed)
    realtime.channel(later, sends=Changed)
    text = (
        f"E052 The declaration of {later!r} is never used: an earlier one, {earlier!r}, is for the"
        " same channels."
    )
    assert mistakes() == [text] * is_mistake


class Unknown:
    """A class that no library knows."""


class Outer(msgspec.Struct):
    """It has one."""

    inner: Unknown


@pytest.mark.parametrize("declared", [Unknown, Outer, list[Unknown], Changed | Unknown, "Changed"])
@pytest.mark.parametrize("role", ["sends", "accepts"])
def test_type_that_no_library_knows_is_found(declared: Any, role: str) -> None:
    realtime.channel("orders:{pk}", **{role: declared})
    [mistake] = mistakes()
    assert mistake.startswith(f"E052 'orders:{{pk}}' {role} a type that no library knows. ")


@pytest.mark.parametrize("pattern", ["other:{pk}", "$other:*"])
def test_pattern_of_no_namespace_is_found(pattern: str) -> None:
    realtime.channel(pattern, sends=Changed)
    assert mistakes() == [
        f"W056 The typed channel {pattern!r} matches no channel: its namespace is not configured."
    ]
