"""What clients took that sent too much: it stays when they come back, or they would flood again.

A client whose commands were refused leaves its debt with its user, or with its address if it has no
user; also one that was not closed for it, which would otherwise leave at the first refusal and have
a burst again. Who connects as that user, or from that address without one, begins with the debt in
place of a whole burst. Others behind the address must not be kept out: connect is not refused for
the debt, refusals are not part of it, so nobody is closed for those of another client, and each has
a copy, so that nobody waits for what another one takes.

Memory: one `Spent` for each user or address with a debt, `MAX_DEBTS` of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from realtime.node.hooks import Handshake
from realtime.node.limits.admission import network_of
from realtime.node.limits.command_rates import Spent
from realtime.protocol.messages import UserID

MAX_DEBTS = 10_000
"""Debts that are remembered at once. With more, the oldest are forgotten."""

MAX_OF_ADDRESS = 60.0
"""Seconds for which clients of one address may have to wait for another one of them at most."""


class Sender(Protocol):
    """A client that sends commands."""

    spent: Spent | None

    @property
    def user(self) -> UserID: ...

    @property
    def handshake(self) -> Handshake: ...


class FloodDebts:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: that of rates."""
        self._clock = clock
        self._debts: dict[tuple[bool, str], Spent] = {}
        """Whether it is a user, and the user ID or the address → debts; the newest are last."""

    def closing(self, client: Sender) -> None:
        """Keep the debts of a client that ends, if commands of it were refused."""
        spent = client.spent
        if spent is None or spent.refusals is None:
            return
        now = self._clock()
        latest = math.inf if client.user else now + MAX_OF_ADDRESS
        if len(self._debts) >= MAX_DEBTS:
            self._forget(now)
        key = _key(client)
        kept = self._debts.pop(key, None) or Spent()
        kept.owe(spent, latest)
        if kept.end > now:
            self._debts[key] = kept

    def connected(self, client: Sender) -> None:
        """Let a client that has connected begin with what its user or address owes."""
        if self._debts and client.spent is not None:
            kept = self._debts.get(_key(client))
            if kept is not None:
                client.spent.owe(kept, math.inf)

    def _forget(self, now: float) -> None:
        """Forget the debts that are over; if that is not half of them, the oldest, too."""
        debts = {key: spent for key, spent in self._debts.items() if spent.end > now}
        for key in list(debts)[: len(debts) - MAX_DEBTS // 2]:
            del debts[key]
        self._debts = debts


def _key(client: Sender) -> tuple[bool, str]:
    user = client.user
    return (True, user) if user else (False, network_of(client.handshake.address))
