"""Slots: how a Redis Cluster spreads keys over servers, and hash tags that spread evenly.

A cluster has 16384 slots, and each server has some of them. The slot of a key is a checksum of its
name; of a name with a hash tag, such as `mysite:{17}:nodes`, a checksum of the tag alone.
"""

from __future__ import annotations

import binascii

SLOTS = 16384


def slot_of(name: str) -> int:
    """Return the slot of a key, or of a Redis channel of sharded pub/sub."""
    tag, closed, _ = name.partition("{")[2].partition("}")  # the first pair of braces
    return binascii.crc_hqx((tag if tag and closed else name).encode(), 0) % SLOTS


def even_tags(count: int) -> tuple[str, ...]:
    """Return hash tags, one in each of `count` equal ranges of slots.

    A range of slots, however a cluster divides them, has as many tags as its share, give or take
    one at each end. The checksums of 0, 1, 2, ... alone are up to twice as many in one range as in
    another. The same count always gives the same tags: they are part of the names of keys.
    """
    found: dict[int, str] = {}
    number = 0
    while len(found) < count:
        tag = str(number)
        found.setdefault(slot_of(tag) * count // SLOTS, tag)
        number += 1
    return tuple(found[index] for index in range(count))
