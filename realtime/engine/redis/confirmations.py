"""What becomes of publications that wait for replicas: counted, and logged once per outage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from realtime.redis.replicas import TooFewReplicas

logger = logging.getLogger("realtime.engine")


class Confirmations:
    """See the module. Threads count without a lock: the number is for the log."""

    def __init__(self) -> None:
        self._missing: dict[int, int] = {}
        """Shard → publications that its replicas did not confirm, since the last that they did."""

    @contextmanager
    def counting(self, shard: int) -> Iterator[None]:
        """Make a publication on a shard within this block."""
        try:
            yield
        except TooFewReplicas as error:
            self.missed(shard, error)
            raise
        else:
            self.confirmed(shard)

    def missed(self, shard: int, error: TooFewReplicas) -> None:
        """Count a publication that replicas did not confirm."""
        count = self._missing.get(shard, 0)
        self._missing[shard] = count + 1
        if count == 0:
            logger.warning("Publications may be lost in a failover: %s", error)

    def confirmed(self, shard: int) -> None:
        """Note that replicas have a publication: an outage is over."""
        if self._missing and (count := self._missing.pop(shard, 0)):
            logger.warning("Replicas have publications again; %d were not confirmed", count)
