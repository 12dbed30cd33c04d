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
        self.tags = [f"{{{tag}}}" for tag in even_tags(count)]
        """The hash tags, braces included."""
        self._numbers = {tag: number for number, tag in enumerate(self.tags)}

    def of(self, group: str) -> int:
        """Return the number of the partition of a group; 0 without partitions."""
        return binascii.crc32(group.encode()) % self.count if self.count else 0

    def tag(self, group: str) -> str:
        """Return the hash tag of a group, braces included; empty without partitions."""
        return self.tags[self.of(group)] if self.count else ""

    def named(self, name: str) -> int:
        """Return the number of the partition whose hash tag is in a name.

        Raises:
            KeyError: it has no tag of these partitions.
        """
        begin = name.index("{")
        return self._numbers[name[begin : name.index("}", begin) + 1]]

    def root(self, prefix: str, group: str) -> str:
        """Return what the names of all keys of a group begin with."""
        return f"{prefix}:{self.tags[self.of(group)]}" if self.count else prefix
