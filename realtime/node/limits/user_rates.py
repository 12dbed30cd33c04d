"""Rates of the commands of a user: over all connections, and all nodes.

Each node counts by itself, and answers by its own counts: no command waits for an engine. About
once a second it adds what users took to their debts there, and learns what they took elsewhere:

    a command ──► the user's debt here ──► within the rate: it runs; beyond: as in `command_rates`
                        │        ▲
      every INTERVAL: what was taken, to the engine ──► what all nodes count: the debt here grows

While the engine is away, each node goes on by its own counts. A user who goes from node to node may
take a burst at each of them, before they have heard of each other; that is a debt, too, and has to
end before the user may go on.

Memory: one `UserDebts` for each user with connections who sent a command, and for each user whose
debt is not over. Anonymous clients have no user, and no rate but their own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple
from weakref import WeakValueDictionary

from realtime.cluster.context import Context
from realtime.config.rates import ALL, Rate
from realtime.engine.limits import Debt, SharedLimits
from realtime.node.limits.command_rates import Spent, refuse
from realtime.protocol.messages import Method, UserID

logger = logging.getLogger("realtime.node")

INTERVAL = 1.0
"""Seconds from one look at the debts to the next."""
SILENT_SHARE = 20
"""A user who takes less than this part of a rate in an interval is not reported to other nodes:
with thousands of users who send a little, that would be work for the engine, and change nothing."""
MAX_AHEAD = 60.0
"""Seconds for which a user who took too much at several nodes may have to wait at most."""
DEBTS_PER_CALL = 200
"""Debts added by one call. Redis runs nothing else meanwhile."""


class UserDebts:
    """What one user has taken, by the number of the rate."""

    __slots__ = ("__weakref__", "ends", "is_noted", "taken", "user")

    def __init__(self, user: UserID, rates: int) -> None:
        self.user = user
        self.ends = [0.0] * rates
        """See `Rate`."""
        self.taken = [0] * rates
        """Commands that other nodes have not heard of."""
        self.is_noted = False
        """Whether the next look is at this user, too."""


class _Taken(NamedTuple):
    debts: UserDebts
    number: int
    """Of the rate."""
    commands: int


class UserRates:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self, context: Context, rates: Mapping[str, Rate], limits: SharedLimits | None
    ) -> None:
        """`rates`: name of a method, or `ALL`, → rate; not empty."""
        self._names = sorted(rates, key=lambda name: (name != ALL, name))
        self._rates = [rates[name] for name in self._names]
        everything = (0,) if ALL in rates else ()
        self._of_others = everything
        """Numbers of the rates of a method without one of its own."""
        self._of_method: dict[Method | None, tuple[int, ...]] = {
            Method(name): (*everything, number)
            for number, name in enumerate(self._names)
            if name != ALL
        }
        self._told = [max(1, int(INTERVAL / rate.interval) // SILENT_SHARE) for rate in self._rates]
        """Commands from which on other nodes hear of them, by the number of the rate."""
        self._shared = limits
        self._context = context
        self._timers = context.timers
        self._timer = context.timers.timer(self._look)
        self._users: WeakValueDictionary[UserID, UserDebts] = WeakValueDictionary()
        self._noted: list[UserDebts] = []
        """Users who took something since the last look, and those whose debt is not over."""
        self._counted_since = 0.0
        """When the counting of commands began that other nodes have not heard of."""
        self._is_telling = False

    def of(self, user: UserID) -> UserDebts:
        """Return the debts of a user, for a connection to keep."""
        return self._users.setdefault(user, UserDebts(user, len(self._rates)))

    def allows(self, debts: UserDebts, spent: Spent, method: Method | None, now: float) -> bool:
        """Count a command of a user, and return whether it may run.

        Args:
            debts: those of the user.
            spent: counts the refusals of the client.
            method: None for one that does not exist, and for a frame without a command.
            now: monotonic seconds.

        Raises:
            DisconnectTooManyRequests: the client goes on although its commands are refused.
        """
        if not debts.is_noted:
            self._note(debts)
        rates, ends, taken = self._rates, debts.ends, debts.taken
        for number in self._of_method.get(method, self._of_others):
            debt_end = rates[number].take(ends[number], now)
            if debt_end is None:
                return refuse(rates[number], spent, method, now)
            ends[number] = debt_end
            taken[number] += 1
        return True

    def _note(self, debts: UserDebts) -> None:
        if not self._noted:
            self._counted_since = self._timers.now()
            self._timer.set(self._counted_since + INTERVAL)
        debts.is_noted = True
        self._noted.append(debts)

    def _look(self) -> None:
        """Tell other nodes what was taken, and forget the users whose debts are over."""
        now = self._timers.now()
        tells = self._shared is not None and not self._is_telling
        taken: list[_Taken] = []
        owing: list[UserDebts] = []
        for debts in self._noted:
            if tells:
                for number, commands in enumerate(debts.taken):
                    if commands >= self._told[number]:
                        taken.append(_Taken(debts, number, commands))
                    debts.taken[number] = 0
            if max(debts.ends) > now:
                owing.append(debts)
            else:
                debts.is_noted = False
        self._noted = owing
        if owing:
            self._timer.set(now + INTERVAL)
        if taken:
            self._is_telling = True
            self._context.spawn(self._tell(taken, now - self._counted_since))
        if tells:
            self._counted_since = now

    async def _tell(self, taken: list[_Taken], elapsed: float) -> None:
        """Add what was taken to the debts of all nodes, and take over what they are. Never raises.

        Args:
            taken: in the last `elapsed` seconds.
            elapsed: seconds.
        """
        try:
            with self._context.logged(
                logger.warning, "Could not count the commands of users, will retry: %s"
            ):
                for start in range(0, len(taken), DEBTS_PER_CALL):
                    await self._add(taken[start : start + DEBTS_PER_CALL], elapsed)
        finally:
            self._is_telling = False

    async def _add(self, taken: list[_Taken], elapsed: float) -> None:
        assert self._shared is not None
        began = self._timers.now()
        left = await self._shared.add_debts(
            [
                Debt(
                    self._names[number],
                    debts.user,
                    commands * self._rates[number].interval,
                    self._rates[number].burst * self._rates[number].interval + MAX_AHEAD,
                )
                for debts, number, commands in taken
            ],
            elapsed,
        )
        for (debts, number, _), seconds in zip(taken, left, strict=True):
            # the engine does not know of those since then
            debt_end = began + seconds + debts.taken[number] * self._rates[number].interval
            if debt_end > debts.ends[number]:
                debts.ends[number] = debt_end
                if not debts.is_noted:
                    self._note(debts)
