"""Rates: how often something may happen, as options say it.

    100/s burst 1000                             one rate
    * 100/s burst 1000, presence 10/s, rpc 30/m  rates by name; * is all of them together

A rate without a burst allows as many at once as its number: `30/m` is 30 a minute, also all 30 in
the first second. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

ALL = "*"
"""The name of the rate that holds for everything together."""

_SECONDS = {"s": 1, "m": 60, "h": 3600}
_RATE = re.compile(r"([1-9][0-9]{0,8})/([smh])(?:\s+burst\s+([1-9][0-9]{0,8}))?")
_NAMED = re.compile(r"(\*|[a-z_]+)\s+(.+)")


class Rate:
    """A number a second in the long run, and a burst at once.

    What was taken is kept as one number for each that takes, its *debt end*: the time at which it
    could take a whole burst again. 0.0 is that of one that took nothing yet. Clocks are those of
    the caller, in seconds.
    """

    __slots__ = ("_longest", "burst", "interval")

    def __init__(self, number: int, seconds: int, burst: int = 0) -> None:
        """
        Args:
            number: how many may be taken in `seconds`, in the long run.
            burst: how many may be taken at once; 0: `number`.
        """
        self.burst = burst or number
        self.interval = seconds / number
        """Seconds after which one more may be taken."""
        self._longest = self.interval * (self.burst - 1)
        """Seconds that the debt end may be ahead of the clock before the last one is taken."""

    def take(self, debt_end: float, now: float) -> float | None:
        """Take one. Return the new debt end; None if nothing may be taken now."""
        if debt_end <= now:
            return now + self.interval
        # clocks are not exact: what is due within a microsecond is due
        if debt_end - now > self._longest + 1e-6:
            return None
        return debt_end + self.interval


def parse(text: str) -> Rate:
    """Return the rate of an option.

    Raises:
        ValueError: it is none.
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text.strip()!r} is not a rate such as 100/s or 100/s burst 1000")
    number, unit, burst = found.groups()
    return Rate(int(number), _SECONDS[unit], int(burst or 0))


def parse_named(text: str, names: Collection[str]) -> dict[str, Rate]:
    """Return the rates of an option by their names.

    Args:
        text: "" for none.
        names: the names that are known, besides `ALL`.

    Raises:
        ValueError: a rate is none, or its name is unknown or comes twice.
    """
    rates: dict[str, Rate] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _NAMED.fullmatch(part)
        if found is None:
            raise ValueError(f"{part!r} is not a name and a rate, such as publish 10/s")
        name = found[1]
        if name != ALL and name not in names:
            raise ValueError(f"{name!r} is not one of *, {', '.join(sorted(names))}")
        if name in rates:
            raise ValueError(f"{name!r} has two rates")
        rates[name] = parse(found[2])
    return rates


def as_rates(value: object) -> object:
    """Write a mapping of names and rates as one text. Everything else is returned as it is."""
    if isinstance(value, Mapping) and all(
        isinstance(part, str) for item in value.items() for part in item
    ):
        return ", ".join(f"{name} {rate}" for name, rate in value.items())
    return value
