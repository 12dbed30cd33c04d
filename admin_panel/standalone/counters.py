"""Counts and marks that expire: in the Redis of the service, or in Django's default cache.

With the Redis engine all processes share them. Without it one process serves the panel, and the
cache may be one that outlives it. Each process also keeps its own in memory, for a Redis or a cache
that is away or forgets.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias, TypeVar

from django.core.cache import cache
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache

from .. import engine

T = TypeVar("T")

MAX_ENTRIES = 10_000
"""Counts and marks in the memory of this process; beyond them the least recently used go."""

RETRY_DELAY = 5.0
"""Seconds for which a Redis or a cache that failed is not asked again: each time may take long."""

_PREFIX = "realtime_admin:"

logger = logging.getLogger("realtime.admin_panel")


class _InCache:
    """Those in one cache."""

    def __init__(self, store: BaseCache) -> None:
        self._store = store

    def add_one(self, key: str, seconds: float) -> int:
        self._store.add(_PREFIX + key, 0, seconds)
        try:
            number = self._store.incr(_PREFIX + key)
        except ValueError:  # the cache has dropped it
            return 1
        # `incr` of some backends sets the default expiry
        self._store.touch(_PREFIX + key, seconds)
        return number

    def count(self, key: str) -> int:
        return int(self._store.get(_PREFIX + key, 0))

    def take_one(self, key: str) -> None:
        with suppress(ValueError):  # dropped
            self._store.decr(_PREFIX + key)

    def mark(self, key: str, seconds: float) -> None:
        self._store.set(_PREFIX + key, 1, seconds)

    def is_marked(self, key: str) -> bool:
        return self._store.get(_PREFIX + key) is not None


class _InRedis:
    """Those in the Redis of the service. Each call is one round trip."""

    def __init__(self, run: engine.RunInRedis) -> None:
        self._run = run

    def add_one(self, key: str, seconds: float) -> int:
        replies = self._run(key, ("INCR",), ("EXPIRE", math.ceil(seconds)))
        return int(replies[0])

    def count(self, key: str) -> int:
        return int(self._run(key, ("GET",))[0] or 0)

    def take_one(self, key: str) -> None:
        if self.count(key) > 0:  # else DECR would make a count that never expires
            self._run(key, ("DECR",))

    def mark(self, key: str, seconds: float) -> None:
        self._run(key, ("SET", 1, "EX", math.ceil(seconds)))

    def is_marked(self, key: str) -> bool:
        return self._run(key, ("GET",))[0] is not None


_Store: TypeAlias = _InCache | _InRedis

_own = LocMemCache("realtime_admin.standalone", {"OPTIONS": {"MAX_ENTRIES": MAX_ENTRIES}})
_here = _InCache(_own)
_retry_at: dict[str, float] = {}
"""Name of a shared store that failed → when it is asked again, in the time of `time.monotonic`."""


def count(key: str, seconds: float) -> int:
    """Count one more and return the count, which is kept for `seconds`.

    This process counts for itself, too: the others may keep nothing, drop the count, or lose some
    of those that are counted at the same time.
    """
    here = _here.add_one(key, seconds)
    return max(here, _shared(lambda store: store.add_one(key, seconds), here))


def counted(key: str) -> int:
    """Return the count."""
    here = _here.count(key)
    return max(here, _shared(lambda store: store.count(key), here))


def take_back(key: str) -> None:
    """Count one less."""
    _here.take_one(key)
    _shared(lambda store: store.take_one(key), None)


def mark(key: str, seconds: float) -> None:
    """Make a mark that lasts `seconds`, here also if it cannot be shared."""
    _here.mark(key, seconds)
    _shared(lambda store: store.mark(key, seconds), None)


def is_marked(key: str) -> bool:
    """Return whether there is such a mark."""
    if _here.is_marked(key) or _shared(lambda store: store.is_marked(key), False):
        return True
    # a mark of before the site had the Redis engine, or of a version that made them all there
    return engine.run_in_redis() is not None and _asked(
        "cache", _InCache(cache), lambda store: store.is_marked(key), False
    )


def _shared(work: Callable[[_Store], T], otherwise: T) -> T:
    """Do something where processes share it. While that is away, return `otherwise`.

    Operators can sign in then.
    """
    run = engine.run_in_redis()
    if run is None:
        return _asked("cache", _InCache(cache), work, otherwise)
    return _asked("Redis", _InRedis(run), work, otherwise)


def _asked(name: str, store: _Store, work: Callable[[_Store], T], otherwise: T) -> T:
    if time.monotonic() < _retry_at.get(name, 0.0):
        return otherwise
    try:
        return work(store)
    except Exception as error:  # each backend has exceptions of its own
        _retry_at[name] = time.monotonic() + RETRY_DELAY
        logger.warning("The %s does not answer, this process counts alone: %s", name, error)
        return otherwise
