"""Admission: whether a process takes one more connection.

What is refused here costs a few microseconds: no client, no task and nothing in memory stays but
one number for an address that has a rate. A connection is refused while

    the process has `client_connection_limit` connections,
    it took `client_connection_rate_limit` in the last second,
    its address took more than `address_connection_rate`; all clients whose address is not known
    have that rate together,
    its event loop is overloaded (`loop_lag`), or
    `MAX_WAITING` are not through with connecting (`connect_queue`): a later one would have given up
    before its turn.

The peer gets status 503 and after how many seconds it may come back, each peer another number.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sized
from ipaddress import IPv6Address, ip_address

from realtime.cluster.context import Context
from realtime.config.rates import Rate
from realtime.metrics import Outage
from realtime.node.limits.connect_queue import ConnectQueue
from realtime.node.loop_lag import LoopLag

logger = logging.getLogger("realtime.client")

SOON = (1, 5)
LATER = (5, 20)
"""Seconds from and to which peers stay away: of a rate, which is over soon, and of other limits."""

MAX_WAITING = 10_000
"""Clients that may wait for a turn. A process is through with them in about five seconds, and then
client libraries give up."""

MAX_ADDRESSES = 50_000
"""Addresses that are remembered at once: 7 MB at most. With more, the oldest are forgotten."""

UNKNOWN = "clients whose address is not known (trusted_proxies is the number of reverse proxies)"
"""What the log has in place of an address."""


class NotAdmitted(Exception):
    """A process takes no connection now. `retry_after`: seconds until it may."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class Admission:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, context: Context, lag: LoopLag, connections: Sized) -> None:
        """`connections`: those of the process."""
        self._timers, config = context.timers, context.config
        self._lag = lag
        self._connections = connections
        self._limit = config.client_connection_limit
        per_second = config.client_connection_rate_limit
        self._rate = Rate(per_second, 1) if per_second else None
        self._debt_end = 0.0
        self._address_rate = config.rate_of_addresses
        self._addresses: dict[str, float] = {}
        """Address → its debt end; those that came last are last."""
        self._outage = Outage()
        self.queue = ConnectQueue(context.loop)
        self.refused = 0
        """Connections that were refused since the process started."""
        self.arriving = 0
        """Requests that will be connections, and have come in part. They count as connections."""

    def check(self, address: str) -> None:
        """Count a new connection.

        Args:
            address: of the peer; "" if it is not known.

        Raises:
            NotAdmitted: the process does not take it.
        """
        now = self._timers.now()
        if self._lag.is_overloaded:
            raise self._refusal(LATER, f"the event loop is {self._lag.seconds:.1f} s late")
        if self.queue.waiting >= MAX_WAITING:
            raise self._refusal(LATER, f"{MAX_WAITING} wait for their turn")
        self.check_limit()
        if self._address_rate is not None:
            self._check_address(self._address_rate, address, now)
        if self._rate is not None:
            debt_end = self._rate.take(self._debt_end, now)
            if debt_end is None:
                raise self._refusal(SOON, "client_connection_rate_limit is reached")
            self._debt_end = debt_end

    async def take_turn(self, address: str) -> None:
        """Count a new connection, and wait until it may be made.

        Arguments and errors are those of `check`.
        """
        self.check(address)
        await self.queue.turn()
        self.check_limit()  # those that waited, too, have become connections meanwhile

    def check_limit(self) -> None:
        """Check that there is room for one more connection; raises NotAdmitted."""
        if 0 < self._limit <= len(self._connections) + self.arriving:
            raise self._refusal(LATER, f"there are {self._limit} connections")

    def _check_address(self, rate: Rate, address: str, now: float) -> None:
        network = network_of(address)
        debt_end = rate.take(self._addresses.get(network, 0.0), now)
        if debt_end is None:
            raise self._refusal(SOON, f"address_connection_rate of {address or UNKNOWN}")
        if len(self._addresses) >= MAX_ADDRESSES:
            self._forget(now)
        self._addresses.pop(network, None)
        self._addresses[network] = debt_end

    def _forget(self, now: float) -> None:
        """Forget the addresses without a debt; if that is not half of them, the oldest, too."""
        addresses = {name: end for name, end in self._addresses.items() if end > now}
        for name in list(addresses)[: len(addresses) - MAX_ADDRESSES // 2]:
            del addresses[name]
        self._addresses = addresses

    def _refusal(self, seconds: tuple[int, int], why: str) -> NotAdmitted:
        self.refused += 1
        if self._outage.begins():
            logger.warning("Refused a connection, as others may be for now: %s", why)
        return NotAdmitted(random.randint(*seconds))


def network_of(address: str) -> str:
    """Return what has one rate: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        packed = IPv6Address(ip_address(address)).packed
    except ValueError:
        return address
    return packed[:8].hex()
