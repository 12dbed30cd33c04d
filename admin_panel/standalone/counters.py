"""Counts and marks that expire, in Django's cache, so that processes with one cache share them.

Each of them is kept in this process, too: what a cache forgets early (a small one drops its
oldest entries), or cannot be asked while it is away, still holds here.
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
"""Counts and marks in this process; beyond them, those go that were not used for longest."""

_PREFIX = "realtime_admin:"

logger = logging.getLogger("realtime.admin_panel")

_own = LocMemCache("realtime_admin.standalone", {"OPTIONS": {"MAX_ENTRIES": MAX_ENTRIES}})


def count(key: str, seconds: float) -> int:
    """Count one more; returns how many there are. They are forgotten after `seconds`."""
    return max(_both(lambda store: _count(store, _PREFIX + key, seconds)))


def counted(key: str) -> int:
    """How many there are."""
    return max(_both(lambda store: int(store.get(_PREFIX + key, 0))))


def take_back(key: str) -> None:
    """Count one less."""
    _both(lambda store: _take_back(store, _PREFIX + key))


def mark(key: str, seconds: float) -> None:
    """Make a mark that lasts `seconds`."""
    _both(lambda store: store.set(_PREFIX + key, 1, seconds))


def is_marked(key: str) -> bool:
    """Whether there is such a mark."""
    return any(_both(lambda store: store.get(_PREFIX + key) is not None))


def _both(do: Callable[[BaseCache], T]) -> list[T]:
    """Do it here and in the cache. A cache that is away must not keep operators out."""
    done = [do(_own)]
    try:
        done.append(do(cache))
    except Exception as error:  # each backend has exceptions of its own
        logger.warning("The cache does not answer, this process counts alone: %s", error)
    return done


def _count(store: BaseCache, key: str, seconds: float) -> int:
    store.add(key, 0, seconds)
    try:
        return store.incr(key)
    except ValueError:
        return 1  # dropped already


def _take_back(store: BaseCache, key: str) -> None:
    with suppress(ValueError):  # dropped already
        store.decr(key)
