"""Maps: how a client gets all entries, and every change after them.

The client becomes a subscriber as in `subscriptions`, and reads pages while it is held in the feed:

    STATE ──► asked, held in the feed ──► page ──┬── not the last: WAITING ── STATE, cursor ──► page
                                                 └── the last ──► LIVE
    STREAM, a position ──► asked, held ──► recovered ──► LIVE

    end of WAITING without a page   the client unsubscribes or closes; the server unsubscribes it;
                                    the stream is lost; PAGE_SECONDS or FLOW_SECONDS are over: it
                                    is slow

The first page and the stream meet at one position, which all pages repeat. The feed holds each
change after that position, so that pages leave these changes out, and LIVE adds them.

Invariants:
- the site is asked once, before the first page;
- a client that waits counts as one that is subscribing: no second flow begins, the number of its
  channels includes the map, and the server may unsubscribe it;
- the next page has the cursor that the client got with the one before;
- where the stream has another epoch, or has lost changes, the answer is error 112, and the flow
  ends.

An ephemeral map has no positions: the feed holds changes since before the first page, and the
client gets all of them again.
"""

from __future__ import annotations

from realtime.config.options import ChannelOptions
from realtime.engine.maps import Maps
from realtime.errors import BadRequest, DisconnectForced, PermissionDenied, UnrecoverablePosition
from realtime.protocol.messages import (
    ChannelName,
    Publication,
    StreamPosition,
    SubscribeRequest,
)
from realtime.streams import recovery

MAP = 1
"""The type of a subscription to a map, and of a publication that changes one."""

STATE, STREAM = 2, 1
"""Phases that a client asks for. In a reply STATE is a page, and 0 the end of the flow."""

MIN_PAGE, MAX_PAGE = 100, 1000
"""Entries of a page, whatever a client asks for."""
PAGE_BYTES = 1024 * 1024
"""Bytes after which a page ends early."""
PAGE_SECONDS = 30.0
"""From a page to the request of the next one: the client has to receive the page meanwhile."""
FLOW_SECONDS = 600.0
"""From the first page to the last one."""


def check_request(request: SubscribeRequest, options: ChannelOptions, map_type: int) -> None:
    """Check the type of a subscription to entries, and its phase.

    Args:
        request: the first one of a flow.
        options: of the channel.
        map_type: see `channel_rules.map_type`.

    Raises:
        PermissionDenied: the channel has no such subscriptions, or there is no such flow.
        BadRequest: there is no such phase.
        UnrecoverablePosition: the map has no stream.
    """
    if request.type != map_type or request.cursor:
        raise PermissionDenied
    if request.phase == STREAM and options.map == "ephemeral":
        raise UnrecoverablePosition
    if request.phase not in (STATE, STREAM):
        raise BadRequest


class Pages:
    """The entries of one map, as one client reads them."""

    __slots__ = ("_channel", "_end", "_has_stream", "_maps", "cursor", "position")

    def __init__(self, maps: Maps, channel: ChannelName, *, has_stream: bool) -> None:
        self._maps = maps
        self._channel = channel
        self._has_stream = has_stream
        self._end = 0.0
        self.cursor = ""
        """Where the next page begins; "" before the first page, and after the last one."""
        self.position: StreamPosition | None = None
        """The top of the stream when the first page was read; None without one."""

    def deadline(self, now: float) -> float:
        """Return when the client must have asked for the next page, as `now`: monotonic seconds."""
        self._end = self._end or now + FLOW_SECONDS
        return min(now + PAGE_SECONDS, self._end)

    def check_next(self, request: SubscribeRequest) -> None:
        """Check that a request asks for the next page.

        Raises:
            PermissionDenied: it has another cursor.
            UnrecoverablePosition: it has another position.
        """
        if request.cursor != self.cursor:
            raise PermissionDenied
        if request.position != (self.position or StreamPosition(0, "")):
            raise UnrecoverablePosition

    async def read(self, limit: int) -> tuple[Publication, ...]:
        """Read the next page.

        Raises:
            UnrecoverablePosition: the stream has begun anew.
            EngineUnavailable: the engine failed.
        """
        limit = min(max(limit, MIN_PAGE), MAX_PAGE)
        entries, cursor, top, _ = await self._maps.page(self._channel, self.cursor, limit)
        first = self.position
        if self._has_stream and first is None:
            first = self.position = top
        elif first is not None and first.epoch != top.epoch:
            raise UnrecoverablePosition
        self.cursor, size = cursor, 0
        for index, entry in enumerate(entries[:-1], 1):
            size += recovery.size_of([entry])
            if size > PAGE_BYTES:
                entries, self.cursor = entries[:index], entry.key
                break
        return entries if first is None else tuple(e for e in entries if e.offset <= first.offset)

    async def read_all(self, most: int) -> tuple[Publication, ...]:
        """Read all pages. `most`: bytes; 0: no limit.

        Raises:
            DisconnectForced: the map is larger; it would be at the next attempt, too.
            UnrecoverablePosition: the stream has begun anew.
            EngineUnavailable: the engine failed.
        """
        entries: list[Publication] = []
        size = 0
        while True:
            page = await self.read(MAX_PAGE)
            entries += page
            size += recovery.size_of(page)
            if most and size > most:
                raise DisconnectForced
            if not self.cursor:
                return tuple(entries)
