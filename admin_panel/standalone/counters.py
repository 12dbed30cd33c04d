"""Counts and marks that expire, in Django's default cache.

Processes that share the cache share them. With Django's default cache, LocMem, each process
has its own. While the cache is away each process uses its own memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from django.core.cache import cache
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache

T = TypeVar("T")

MAX_ENTRIES = 10_000
"""Counts and marks in the memory of this process; beyond them the least recently used go."""

_PREFIX = "realtime_admin:"

logger = logging.getLogger("realtime.admin_panel")

_own = LocMemCache("realtime_admin.standalone", {"OPTIONS": {"MAX_ENTRIES": MAX_ENTRIES}})


def count(key: str, seconds: float) -> int:
    """Count one more and return the count, which is kept for `seconds`."""

    def add_one(store: BaseCache) -> int:
        store.add(_PREFIX + key, 0, seconds)
        try:
            number = store.incr(_PREFIX + key)
        except ValueError:  # the cache has dropped it
            return 1
        store.touch(_PREFIX + key, seconds)  # `incr` of some backends sets the default expiry
        return number

    return _in_cache(add_one)


def counted(key: str) -> int:
    """Return the count."""
    return _in_cache(lambda store: int(store.get(_PREFIX + key, 0)))


def take_back(key: str) -> None:
    """Count one less."""
    with suppress(ValueError):  # the cache has dropped it
        _in_cache(lambda store: store.decr(_PREFIX + key))


def mark(key: str, seconds: float) -> None:
    """Make a mark that lasts `seconds`, here also if the cache drops it or is away."""
    _own.set(_PREFIX + key, 1, seconds)
    _in_cache(lambda store: store.set(_PREFIX + key, 1, seconds))


def is_marked(key: str) -> bool:
    """Return whether there is such a mark."""
    here = _own.get(_PREFIX + key) is not None
    return here or _in_cache(lambda store: store.get(_PREFIX + key) is not None)


def _in_cache(work: Callable[[BaseCache], T]) -> T:
    """Do something in the cache, or in this process' memory so that operators can sign in."""
    try:
        return work(cache)
    except ValueError:
        raise
    except Exception as error:  # each backend has exceptions of its own
        logger.warning("The cache does not answer, this process counts alone: %s", error)
        return work(_own)
