"""How far one stream was followed: the pure part of order and completeness.

Publications arrive in any order, twice, or not at all; they are handed on in the order of
their offsets, each once. What arrives too early waits until the stream was read. When the
stream does not continue what was handed on, `StreamLost` says so.

Spec: Channel options (history_recover).
"""

from __future__ import annotations

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition

EARLY_ALLOWED = 10_000
"""Publications that may wait; more are dropped, and read from the stream instead."""


class StreamLost(Exception):
    """The stream cannot give what comes after the last publication handed on.

    `renew`: it is a stream of the same epoch that lost publications, so the epoch must not be
    trusted any more.
    """

    def __init__(self, renew: bool) -> None:
        self.renew = renew
        super().__init__("the stream does not continue")


class Follower:
    """Follows one stream from a position on."""

    __slots__ = ("_asked", "_doubts", "_early", "_epoch", "_seen", "_settled", "_uid", "position")

    def __init__(self) -> None:
        self.position: StreamPosition | None = None
        """Of the last publication handed on; None until `start`."""
        self._uid = ""
        self._early: dict[int, Publication] = {}
        self._epoch = ""
        """Of those that arrived before `start`."""
        self._doubts = 0
        """Occasions on which publications may have been lost; those up to `_settled` were not."""
        self._settled = 0
        self._asked = 0
        self._seen = 0
        """The highest offset that had arrived when the stream was last asked for."""

    @property
    def behind(self) -> bool:
        """Whether the stream has to be read: something is missing, or may be."""
        return self._doubts != self._settled or bool(self._early)

    def start(self, position: StreamPosition) -> list[Publication]:
        """Follow from a position on; returns what arrived early and follows it."""
        if self.position is not None:
            self._early.clear()  # of the stream that was lost
        self.position = position
        self._uid = ""
        self._settled = self._asked
        if self._early and self._epoch != position.epoch:
            self._early.clear()
            self.doubt()
        return self._take_early()

    def arrived(self, publication: Publication, position: StreamPosition) -> list[Publication]:
        """A publication arrived; returns what is to be handed on now, in order."""
        last = self.position
        if last is None:
            if position.epoch != self._epoch:
                self._early.clear()
                self._epoch = position.epoch
            self._keep(publication)
            return []
        if position.epoch != last.epoch:
            self.doubt()
            return []
        if position.offset <= last.offset:
            return []
        if self.behind or position.offset != last.offset + 1:
            self._keep(publication)
            return self._take_early() if self._doubts == self._settled else []
        self.position = position
        self._uid = publication.uid
        return [publication]

    def doubt(self) -> None:
        """Publications may have been lost: nothing is handed on until the stream was read."""
        self._doubts += 1

    def ask(self) -> int:
        """The offset to read the stream from: that of the last one handed on.

        To be called before the stream or its position is read, for `read` or `start`.
        """
        own = 0 if self.position is None else self.position.offset
        self._asked = self._doubts
        self._seen = max(self._early, default=own)
        return own

    def read(self, history: History) -> list[Publication]:
        """The stream was read, as `ask` said; returns what is to be handed on now, in order.

        Raises:
            StreamLost: call `start` to follow the stream as it is now.
        """
        last = self.position
        assert last is not None
        top = history.position
        if top.epoch != last.epoch:
            raise StreamLost(renew=False)
        # more may have been handed on since it was read, which proves nothing
        if top.offset < self._seen or self._diverged(history, last):
            raise StreamLost(renew=True)
        for publication in history.publications:
            if publication.offset > last.offset:
                self._early[publication.offset] = publication
        publications = self._take_early()
        if self.position is not None and self.position.offset < top.offset:
            self.doubt()
            raise StreamLost(renew=False)
        self._settled = self._asked
        return publications

    def _diverged(self, history: History, last: StreamPosition) -> bool:
        """Whether another publication stands in the place of the last one handed on."""
        return any(
            p.offset == last.offset and self._uid not in ("", p.uid) for p in history.publications
        )

    def _keep(self, publication: Publication) -> None:
        if len(self._early) >= EARLY_ALLOWED:
            self._early.clear()
            self.doubt()
        self._early[publication.offset] = publication

    def _take_early(self) -> list[Publication]:
        """What waited and follows now; what was handed on already is dropped."""
        last = self.position
        assert last is not None
        offset = last.offset
        publications = []
        while (publication := self._early.pop(offset + 1, None)) is not None:
            publications.append(publication)
            offset += 1
        if publications:
            self.position = StreamPosition(offset, last.epoch)
            self._uid = publications[-1].uid
        if self._early:
            self._early = {o: p for o, p in self._early.items() if o > offset}
        return publications
