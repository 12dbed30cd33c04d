"""Finding: what one check of the doctor says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail", "skip"]


class Finding(NamedTuple):
    """What was found, and what to do about it."""

    status: Status
    """skip: it was not looked at, and `found` says why."""
    found: str
    advice: str = ""


class Check(NamedTuple):
    """One thing that is looked at.

    `look` may raise Unreachable and EngineUnavailable, which make the check fail.
    """

    name: str
    look: Callable[[], Finding]


def ok(found: str, advice: str = "") -> Finding:
    """As it should be."""
    return Finding("ok", found, advice)


def warn(found: str, advice: str) -> Finding:
    """It works, and may go wrong."""
    return Finding("warn", found, advice)


def fail(found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding("fail", found, advice)


def skip(found: str, advice: str = "") -> Finding:
    """It was not looked at."""
    return Finding("skip", found, advice)
