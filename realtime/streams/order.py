"""Order of one stream: the pure part of order and completeness.

Publications arrive in any order, twice, or not at all. They are delivered in the order of their
offsets, each once. Those that arrive early wait until the stream was read. Where the stream does
not continue after the last one that was delivered, `StreamLost` is raised.

States:

    NEW         `position` is None: all that arrives waits, for the next offset is unknown.
    IN ORDER    nothing is missing as far as is known: the next offset is delivered at once.
    BEHIND      something is missing, or may be: all that arrives waits, and the caller reads.

Events, and what they lead to:

    NEW         start                                       IN ORDER; or BEHIND, where what waited
                                                            does not follow that position
    IN ORDER    receive the next offset                     IN ORDER
                receive an offset that was delivered        IN ORDER
                receive a later offset, or another epoch    BEHIND
                suspect_loss                                BEHIND
    BEHIND      end_read                                    IN ORDER; or BEHIND, where something
                                                            was suspected since begin_read
                end_read raises StreamLost, and start       as from NEW

    begin_read comes before start and end_read, and changes no state.

A read takes time. It proves what it holds for the moment at which it began, and says nothing of
what happened since. So occasions of a possible loss are counted:

    _suspected           occasions until now
    _suspected_at_read   occasions until the last read began
    _cleared             occasions of which a read has proved that nothing is missing any more
    _top_at_read         the highest offset that had arrived when the last read began: a stream
                         that ends before it has lost publications

Invariants:

- `_cleared` <= `_suspected_at_read` <= `_suspected`; none of them ever decreases.
- BEHIND is: `_suspected` != `_cleared`, or publications wait.
- Those that wait have a higher offset than `position`, and its epoch; before `start`, `_epoch`.
- Within an epoch, delivered offsets have neither gaps nor repetitions, and `position` is the last.

docs/protocol.md, 3.9 and 3.11.
"""

from __future__ import annotations

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition

MAX_EARLY = 10_000
"""Publications that may wait; more are dropped, and read from the stream instead."""


class StreamLost(Exception):
    """The stream does not continue after the last publication that was delivered."""

    def __init__(self, renew: bool) -> None:
        """`renew`: its epoch is the same, and must be replaced, since publications are lost."""
        self.renew = renew
        super().__init__("the stream does not continue")


class StreamOrder:
    """Puts the publications of one stream in order. See the module's docstring."""

    __slots__ = (
        "_cleared",
        "_early",
        "_epoch",
        "_suspected",
        "_suspected_at_read",
        "_top_at_read",
        "_uid",
        "position",
    )

    def __init__(self) -> None:
        self.position: StreamPosition | None = None
        """Of the last publication that was delivered; None before `start`."""
        self._uid = ""
        """Of that publication; "" where it is unknown."""
        self._early: dict[int, Publication] = {}
        """The publications that wait, by offset."""
        self._epoch = ""
        """Epoch of the publications that arrived before `start`."""
        self._suspected = 0
        self._suspected_at_read = 0
        self._cleared = 0
        self._top_at_read = 0

    @property
    def is_behind(self) -> bool:
        """Whether the stream must be read: something is missing, or may be."""
        return self._suspected != self._cleared or bool(self._early)

    def start(self, top: History) -> list[Publication]:
        """Follow the stream from its top on; also after `StreamLost`.

        Args:
            top: as it was read since `begin_read`.

        Returns:
            The publications to deliver now, in order.
        """
        if self.position is not None:
            # of the stream that was lost; or they came after its new position was read
            self._epoch = self.position.epoch
        self.position = position = top.position
        self._uid = top.top_uid
        self._cleared = self._suspected_at_read
        if self._early and self._epoch != position.epoch:
            self._early.clear()
            self.suspect_loss()
        self._early = {o: p for o, p in self._early.items() if o > position.offset}
        return self._take_due()

    def receive(self, publication: Publication, position: StreamPosition) -> list[Publication]:
        """Take a publication that arrived.

        Returns:
            The publications to deliver now, in order.
        """
        last = self.position
        if last is None:
            if position.epoch != self._epoch:
                self._early.clear()
                self._epoch = position.epoch
            self._keep(publication)
            return []
        if position.epoch != last.epoch:
            self.suspect_loss()
            return []
        if position.offset <= last.offset:
            return []
        if self.is_behind or position.offset != last.offset + 1:
            self._keep(publication)
            return self._take_due() if self._suspected == self._cleared else []
        self.position = position
        self._uid = publication.uid
        return [publication]

    def is_at(self, top: History) -> bool:
        """Return whether the last publication that was delivered is the top of the stream."""
        return top.position == self.position and self._is_last(top.top_uid)

    def _is_last(self, uid: str) -> bool:
        return "" in (uid, self._uid) or uid == self._uid

    def suspect_loss(self) -> None:
        """Deliver nothing until the stream was read: publications may have been lost."""
        self._suspected += 1

    def begin_read(self) -> int:
        """Prepare for `start` or `end_read`; call it before the position or the stream is read.

        Returns:
            The offset to read from: that of the last publication that was delivered.
        """
        last = 0 if self.position is None else self.position.offset
        self._suspected_at_read = self._suspected
        self._top_at_read = max(self._early, default=last)
        return last

    def end_read(self, history: History) -> list[Publication]:
        """Take the stream, as it was read from the offset of `begin_read`.

        Returns:
            The publications to deliver now, in order.

        Raises:
            StreamLost: it does not continue; call `begin_read`, read the top, and `start`.
        """
        last = self.position
        assert last is not None
        top = history.position
        if top.epoch != last.epoch:
            raise self._lost(renew=False)
        # only what had arrived before the read: what came since may follow the stream's top
        if top.offset < self._top_at_read or self._diverged(history, last):
            raise self._lost(renew=True)
        for publication in history.publications:
            if publication.offset > last.offset:
                self._early[publication.offset] = publication
        due = self._take_due()
        if self.position is not None and self.position.offset < top.offset:
            raise self._lost(renew=False)
        self._cleared = self._suspected_at_read
        return due

    def _lost(self, *, renew: bool) -> StreamLost:
        """Deliver nothing until `start`, also where the read was only a check."""
        self.suspect_loss()
        return StreamLost(renew)

    def _diverged(self, history: History, last: StreamPosition) -> bool:
        """Return whether another publication stands, or stood, in the place of the last one."""
        if history.position.offset == last.offset:
            return not self._is_last(history.top_uid)
        for publication in history.publications:
            if publication.offset == last.offset:
                return not self._is_last(publication.uid)
            if publication.offset == last.offset + 1:  # it is not kept any more
                return not self._is_last(history.previous_uid)
        return False

    def _keep(self, publication: Publication) -> None:
        if len(self._early) >= MAX_EARLY:
            self._early.clear()
            self.suspect_loss()
        self._early[publication.offset] = publication

    def _take_due(self) -> list[Publication]:
        """Remove and return the waiting publications that come next.

        All that wait are later than the position.
        """
        last = self.position
        assert last is not None
        offset = last.offset
        due = []
        while (publication := self._early.pop(offset + 1, None)) is not None:
            due.append(publication)
            offset += 1
        if due:
            self.position = StreamPosition(offset, last.epoch)
            self._uid = due[-1].uid
        return due
