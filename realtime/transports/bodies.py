"""Bodies of requests while they come: how long they may take, and how much they may hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from realtime.node.limits.admission import Admission
from realtime.server_api import http

BODY_TIMEOUT = 10.0
"""Seconds that a body may take, and `BODY_RATE` gives it more: as long as the head of a request."""

BODY_RATE = 16 * 1024
"""Bytes that lengthen the time of a body by a second. A slower peer has more than enough time for
64 KiB, which most requests may have."""

HELD_MAX_BYTES = 16 * 2**20
"""Bytes of all bodies in a process that have come in part, but for those that bear the API key.
Above it the largest is refused, so that a few strangers leave room for what others send."""


class Incoming:
    """A body that has come in part. Belongs to one request, which calls `end`."""

    __slots__ = ("_counts", "_held", "is_refused", "size")

    held_bytes = 0
    """Of all of them in this process."""
    _holding: ClassVar[dict[Incoming, Callable[[], object]]] = {}
    """Those that `held_bytes` counts → refuses the rest of one."""

    def __init__(self, *, counts: bool = True) -> None:
        """`counts`: whether it counts for `HELD_MAX_BYTES`."""
        self._counts = counts
        self._held = 0
        """Bytes of it in `held_bytes`."""
        self.size = 0
        """Bytes that have come."""
        self.is_refused = False
        """Whether there is no room for it any more."""

    @property
    def seconds(self) -> float:
        """How long the body may take, from its beginning."""
        return BODY_TIMEOUT + self.size / BODY_RATE

    def take(self, size: int, refuse: Callable[[], object], *, is_last: bool) -> bool:
        """Count a part. Return whether there is room for it.

        Args:
            size: of the part, in bytes.
            refuse: is called when a smaller body needs the room.
            is_last: the body has come, and needs none.
        """
        self.size += size
        if not self._counts or is_last or self.is_refused:
            return not self.is_refused
        self._held += size
        Incoming.held_bytes += size
        holding = Incoming._holding
        holding[self] = refuse
        while Incoming.held_bytes > HELD_MAX_BYTES and not self.is_refused:
            largest = max(holding, key=lambda body: (body._held, body is self))
            largest.is_refused = True
            refuse = holding[largest]
            largest.end()
            if largest is not self:
                refuse()
        return not self.is_refused

    def end(self) -> None:
        """Count it no more: it has come, or will not."""
        Incoming.held_bytes -= self._held
        self._held = 0
        Incoming._holding.pop(self, None)


class ExpectedBody(NamedTuple):
    """What is decided about a request with a body from its head."""

    refusal: http.Response | None = None
    limit: int | None = None
    """Largest size of the body in bytes; None for no limit."""
    incoming: Incoming | None = None
    """The body, if it is for the service: it has to come in time."""
    admission: Admission | None = None
    """Counts the request as a connection, which it will be."""
    retry_after: int = 0
    """Seconds after which a client that was refused may come back; 0: not said."""
