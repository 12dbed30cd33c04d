"""Finding: the result of one check of the doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "fail", "skip"]


class Finding(NamedTuple):
    """The result of a check, and advice."""

    status: Status
    """skip: the check was not made, and `found` says why."""
    found: str
    advice: str = ""


class DoctorCheck(NamedTuple):
    """One check.

    `run` may raise Unreachable and EngineUnavailable, which make the check fail.
    """

    name: str
    run: Callable[[], Finding]


def ok(found: str, advice: str = "") -> Finding:
    """Report that all is well."""
    return Finding("ok", found, advice)


def warn(found: str, advice: str) -> Finding:
    """Report something that works and may go wrong."""
    return Finding("warn", found, advice)


def fail(found: str, advice: str) -> Finding:
    """Report something that does not work."""
    return Finding("fail", found, advice)


def skip(found: str, advice: str = "") -> Finding:
    """Report that the check was not made."""
    return Finding("skip", found, advice)
