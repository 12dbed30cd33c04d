"""Positions of channels as they were when a request began.

A page is made of queries. A position that is older than all of them makes the browser receive what
was published since, so nothing is lost between the queries and the subscription. Before
the first query the channels are not known, so the time is noted, and the position of that time is
read later.

The time is that of the host, and publications have that of the engine. `page_margin` is subtracted,
so that clocks may differ by as much. An engine that is away costs a page at most three times
`READ_TIMEOUT`, and then nothing for `RETRY_DELAY`: the position is unknown, and the client loads
the state.

Where the engine uses the database of the page, and the transaction of the page sees one snapshot,
the positions are those of the snapshot: without a margin, and without a clock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from django.http import HttpRequest

from realtime.channel_rules import check_channel, name
from realtime.cluster.member import Member
from realtime.config.options import Config
from realtime.errors import (
    BadRequest,
    EngineUnavailable,
    InternalError,
    LimitExceeded,
    NotAvailable,
    NotServing,
)
from realtime.protocol.messages import StreamPosition
from realtime.server_api.arguments import Position
from realtime.serving import run_by_hand, serving
from realtime.tracing.recording import recorder
from realtime.transports.asgi import BEGUN

logger = logging.getLogger("realtime.pages")

READ_TIMEOUT = 0.2
"""Seconds that a page waits for a connection, and for the positions."""
RETRY_DELAY = 1.0
"""Seconds after a failure for which pages do not ask."""
LOG_INTERVAL = 60.0
"""Seconds between log lines about positions that could not be read."""

ATTRIBUTE = "_realtime_begun"

Work: TypeAlias = Callable[[Member], Awaitable[list[StreamPosition]]]
Ask: TypeAlias = Callable[[Work], Awaitable[list[StreamPosition]]]
"""Has a member of the service do work."""


def note_begin(request: HttpRequest) -> None:
    """Note when a request began: now, if it is not noted yet."""
    if begun_at(request) is None:
        setattr(request, ATTRIBUTE, time.time())


def begun_at(request: HttpRequest) -> float | None:
    """Return when a request began, Unix seconds; None if it was not noted."""
    begun: float | None = getattr(request, ATTRIBUTE, None)
    if begun is None:
        begun = getattr(request, "scope", {}).get(BEGUN)
    return begun


def time_of(request: HttpRequest) -> int:
    """Return the time whose positions are those of a request: Unix ms.

    Raises:
        RuntimeError: the beginning of the request was not noted.
    """
    begun = begun_at(request)
    if begun is None:
        raise RuntimeError(
            "The beginning of this request was not noted: add"
            " 'realtime.pages.middleware.PositionMiddleware' to MIDDLEWARE."
        )
    # not its own millisecond: what was published in it may be newer
    return int((begun - serving.config().page_margin) * 1000) - 1


def positions(request: HttpRequest, channels: Sequence[str]) -> dict[str, Position | None]:
    """Return the positions that channels had when a request began, in one round trip per shard.

    In a transaction that sees one snapshot of the database of the engine, they are those of the
    snapshot.

    Args:
        request: the request in work.
        channels: names of channels with recovery.

    Returns:
        Channel → position; None if it is unknown, because the engine is away or clients chose a
        name that is none.

    Raises:
        NotAvailable: a channel does not recover: turn on history and `force_recovery`.
        NamespaceNotFound: a channel is in no namespace of the configuration.
        RuntimeError: the beginning of the request was not noted; or called on an event loop.
    """
    if (found := in_snapshot(channels)) is not None:
        return found
    return read(channels, time_of(request))


def in_snapshot(channels: Sequence[str]) -> dict[str, Position | None] | None:
    """Return the positions of channels in the snapshot of a transaction; None without one."""
    found = None if serving.snapshot is None else serving.snapshot(channels)
    return found and _recorded(found)


async def apositions(request: HttpRequest, channels: Sequence[str]) -> dict[str, Position | None]:
    """Return the positions that channels had when a request began. Async version of `positions`."""
    return await read_by(acall, channels, time_of(request))


def read(channels: Sequence[str], at: int | None) -> dict[str, Position | None]:
    """Return positions at a time in Unix ms, or those of now; see `positions`."""
    return run_by_hand(read_by(call, channels, at))


async def read_by(ask: Ask, channels: Sequence[str], at: int | None) -> dict[str, Position | None]:
    """Return what `read` does. `ask`: `call` or `acall`."""
    return _recorded(await _reader.read(dict.fromkeys(channels), at, ask))


async def call(work: Work) -> list[StreamPosition]:
    """Ask the engine in a thread. Never waits, so that `run_by_hand` can run it."""
    return serving.call(work, async_name="pages.apositions", timeout=READ_TIMEOUT)


async def acall(work: Work) -> list[StreamPosition]:
    """Ask the engine from a coroutine."""
    async with asyncio.timeout(3 * READ_TIMEOUT):
        return await serving.acall(work, timeout=READ_TIMEOUT)


def _recorded(found: dict[str, Position | None]) -> dict[str, Position | None]:
    """Return the positions, and show them to what records this request."""
    if (recording := recorder.get()) is not None:
        recording.positions(found)
    return found


def check(channel: str) -> bool:
    """Return whether a channel can have a position; raises as `positions`."""
    return _is_usable(name(channel), serving.config())


def _is_usable(channel: str, config: Config) -> bool:
    try:
        options = check_channel(channel, config)
    except (BadRequest, LimitExceeded):  # a visitor may have chosen the name
        return False
    if not options.keeps_history or not (options.force_recovery or options.allow_recovery):
        raise NotAvailable(
            message=f"channel {channel!r} needs history and force_recovery for positions of pages"
        )
    return True


class _Reader:
    """Reads positions, and pauses after a failure."""

    def __init__(self) -> None:
        self._retry_at = 0.0
        self._log_at = 0.0

    async def read(
        self, channels: Mapping[str, None], at: int | None, ask: Ask
    ) -> dict[str, Position | None]:
        result: dict[str, Position | None] = dict.fromkeys(channels)
        if not (wanted := self._wanted(channels)):
            return result
        try:
            found = await ask(lambda member: member.broker.positions(wanted, at))
        except (EngineUnavailable, NotServing, InternalError, TimeoutError) as error:
            self._failed(error)
            return result
        for channel, position in zip(wanted, found, strict=True):
            if position.epoch:  # the dummy engine has none
                result[channel] = Position(position.offset, position.epoch)
        return result

    def _wanted(self, channels: Mapping[str, None]) -> list[str]:
        """Return the channels to ask for; none while the reader pauses."""
        config = serving.config()
        wanted = [channel for channel in channels if _is_usable(name(channel), config)]
        return wanted if time.monotonic() >= self._retry_at else []

    def _failed(self, error: Exception) -> None:
        now = time.monotonic()
        self._retry_at = now + RETRY_DELAY
        if now >= self._log_at:
            self._log_at = now + LOG_INTERVAL
            logger.warning("Pages have no positions, their clients load the state: %s", error)


_reader = _Reader()
