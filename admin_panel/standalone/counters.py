"""Counts and marks that expire, in Django's default cache.

Processes that share the cache share them. With Django's default cache, LocMem, each process
has its own. Each process also keeps its own in memory, for caches that are away or forget.
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
    """Count one more and return the count, which is kept for `seconds`.

    This process counts for itself, too: the cache may keep nothing, drop the count, or lose some of
    those that are counted at the same time.
    """
    here = _add_one(_own, key, seconds)
    return max(here, _in_cache(lambda store: _add_one(store, key, seconds), here))


def _add_one(store: BaseCache, key: str, seconds: float) -> int:
    store.add(_PREFIX + key, 0, seconds)
    try:
        number = store.incr(_PREFIX + key)
    except ValueError:  # the cache has dropped it
        return 1
    store.touch(_PREFIX + key, seconds)  # `incr` of some backends sets the default expiry
    return number


def counted(key: str) -> int:
    """Return the count."""
    here = _count_in(_own, key)
    return max(here, _in_cache(lambda store: _count_in(store, key), here))


def _count_in(store: BaseCache, key: str) -> int:
    return int(store.get(_PREFIX + key, 0))


def take_back(key: str) -> None:
    """Count one less."""
    with suppress(ValueError):  # dropped, as everywhere here
        _own.decr(_PREFIX + key)
    with suppress(ValueError):
        _in_cache(lambda store: store.decr(_PREFIX + key), 0)


def mark(key: str, seconds: float) -> None:
    """Make a mark that lasts `seconds`, here also if the cache drops it or is away."""
    _own.set(_PREFIX + key, 1, seconds)
    _in_cache(lambda store: store.set(_PREFIX + key, 1, seconds), None)


def is_marked(key: str) -> bool:
    """Return whether there is such a mark."""
    here = _own.get(_PREFIX + key) is not None
    return here or _in_cache(lambda store: store.get(_PREFIX + key) is not None, False)


def _in_cache(work: Callable[[BaseCache], T], otherwise: T) -> T:
    """Do something in the cache. While it is away, operators can sign in: return `otherwise`."""
    try:
        return work(cache)
    except ValueError:
        raise
    except Exception as error:  # each backend has exceptions of its own
        logger.warning("The cache does not answer, this process counts alone: %s", error)
        return otherwise
