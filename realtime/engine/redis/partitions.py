"""Partitions: hash tags in the names of keys, so that what belongs to a channel is in one slot.

With partitions, each channel belongs to one of them, by its group: its stream with the epoch of
new streams, its presence and its pub/sub. A script touches keys of one partition only, so a Redis
Cluster runs it. Without partitions no name has a hash tag, as wherever there is no cluster.
"""

from __future__ import annotations

import binascii

from realtime.redis.slots import even_tags

DEFAULT_PARTITIONS = 128
"""Enough for an even share of each of dozens of servers, and few enough for one command each when
all channels are subscribed to again."""


class Partitions:
    """The partitions of one service; the same number in every process."""

    def __init__(self, count: int = 0) -> None:
        """`count`: 0 for none."""
        self.count = count
        self._tags = [f"{{{tag}}}" for tag in even_tags(count)]

    def of(self, group: str) -> int:
        """Return the number of the partition of a group; 0 without partitions."""
        return binascii.crc32(group.encode()) % self.count if self.count else 0

    def tag(self, group: str) -> str:
        """Return the hash tag of a group, braces included; empty without partitions."""
        return self._tags[self.of(group)] if self.count else ""

    def root(self, prefix: str, group: str) -> str:
        """Return what the names of all keys of a group begin with."""
        return f"{prefix}:{self._tags[self.of(group)]}" if self.count else prefix
