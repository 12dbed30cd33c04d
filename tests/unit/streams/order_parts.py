"""Parts of the tests of orders: publications that arrive, and reads of the stream."""

from __future__ import annotations

import pytest

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.order import StreamLost, StreamOrder
from tests.unit.parts import data

E, OTHER = "qKzD", "AAAA"


def publication(offset: int, uid: str = "") -> Publication:
    return Publication(data("1"), None, offset, uid or f"u{offset}")


def started(offset: int, uid: str = "") -> StreamOrder:
    """Return an order that was started at this offset; `uid`: of the publication there."""
    order = StreamOrder()
    order.begin_read()
    assert order.start(History((), StreamPosition(offset, E), uid)) == []
    return order


def arrive(order: StreamOrder, *offsets: int, epoch: str = E) -> list[int]:
    """Let publications arrive; return the offsets of those that are delivered."""
    return [
        delivered.offset
        for offset in offsets
        for delivered in order.receive(publication(offset), StreamPosition(offset, epoch))
    ]


def read(order: StreamOrder, top: int, *kept: int, epoch: str = E) -> list[int]:
    """End a read; return the offsets of the publications that are delivered."""
    history = History(tuple(map(publication, kept)), StreamPosition(top, epoch))
    return [delivered.offset for delivered in order.end_read(history)]


def lose(order: StreamOrder, top: int, *kept: int, epoch: str = E) -> None:
    """End a read with a stream that does not continue, so that the order starts anew."""
    order.begin_read()
    with pytest.raises(StreamLost):
        read(order, top, *kept, epoch=epoch)
    order.begin_read()


def start(order: StreamOrder, offset: int, epoch: str = E) -> list[int]:
    top = History((), StreamPosition(offset, epoch))
    return [delivered.offset for delivered in order.start(top)]
