"""Rates of commands: how many a client may send, and what becomes of those beyond.

    within its rates     the command runs
    beyond               error 111 "too many requests"; it may try again
    beyond, and on       as many refusals as the rate would allow commands: the connection is closed

A client that waits after an error stays; one that floods the service goes. Commands that a client
cannot do without are never refused, but count: an unsubscribe, a ping or pong, a new token.
"""

from __future__ import annotations

from collections.abc import Mapping

from realtime.config.rates import ALL, Rate
from realtime.errors import DisconnectTooManyRequests
from realtime.protocol.messages import Method

NEVER_REFUSED = frozenset(
    (Method.UNSUBSCRIBE, Method.REFRESH, Method.SUB_REFRESH, Method.PING, Method.PONG)
)


class Spent:
    """What one client has taken of its rates: the debt ends of `Rate`."""

    __slots__ = ("all", "by_method", "heard_at", "refusals")

    def __init__(self) -> None:
        self.all = 0.0
        self.heard_at = 0.0
        """Seconds of the loop's clock at the last command."""
        self.refusals: dict[Rate, float] | None = None
        """By the rate that refused: each has its own. None until the first refusal."""
        self.by_method: dict[Method, float] | None = None
        """Of methods with a rate of their own; None until the first of these."""

    @property
    def end(self) -> float:
        """When all debts are over."""
        return max(self.all, *(self.by_method or {}).values(), 0.0)

    def owe(self, other: Spent, latest: float) -> None:
        """Take over what another client has taken, where that is more, up to a debt end."""
        self.all = max(self.all, min(other.all, latest))
        for method, debt_end in (other.by_method or {}).items():
            own = self.by_method = self.by_method or {}
            own[method] = max(own.get(method, 0.0), min(debt_end, latest))


class CommandRates:
    """The rates that hold for each client."""

    __slots__ = ("_all", "_by_method")

    def __init__(self, rates: Mapping[str, Rate]) -> None:
        """`rates`: name of a method, or `ALL`, → rate."""
        self._all = rates.get(ALL)
        self._by_method = {Method(name): rate for name, rate in rates.items() if name != ALL}

    def allows(self, spent: Spent, method: Method | None, now: float) -> bool:
        """Count a command, and return whether it may run.

        Args:
            method: None for one that does not exist, and for a frame without a command.
            now: monotonic seconds.

        Raises:
            DisconnectTooManyRequests: the client goes on although its commands are refused.
        """
        if (rate := self._all) is not None:
            debt_end = rate.take(spent.all, now)
            if debt_end is None:
                return refuse(rate, spent, method, now)
            spent.all = debt_end
        if method is None or (rate := self._by_method.get(method)) is None:
            return True
        if spent.by_method is None:
            spent.by_method = {}
        debt_end = rate.take(spent.by_method.get(method, 0.0), now)
        if debt_end is None:
            return refuse(rate, spent, method, now)
        spent.by_method[method] = debt_end
        return True


def refuse(rate: Rate, spent: Spent, method: Method | None, now: float) -> bool:
    """Count a refusal, and return whether the command runs all the same.

    Raises:
        DisconnectTooManyRequests: the client goes on although its commands are refused.
    """
    if spent.refusals is None:
        spent.refusals = {}
    debt_end = rate.take(spent.refusals.get(rate, 0.0), now)
    if debt_end is None:
        raise DisconnectTooManyRequests
    spent.refusals[rate] = debt_end
    return method in NEVER_REFUSED
