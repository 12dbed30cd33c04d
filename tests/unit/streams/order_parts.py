"""What the tests of following share: letting publications arrive, answering what is asked."""

from __future__ import annotations

import pytest

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.order import StreamLost, StreamOrder
from tests.unit.parts import data

E, OTHER = "qKzD", "AAAA"


def publication(offset: int, uid: str = "") -> Publication:
    return Publication(data("1"), None, offset, uid or f"u{offset}")


def following(offset: int) -> StreamOrder:
    """Return an order that was started at this offset."""
    order = StreamOrder()
    order.begin_read()
    assert order.start(StreamPosition(offset, E)) == []
    return order


def arrive(order: StreamOrder, *offsets: int, epoch: str = E) -> list[int]:
    """Let publications arrive; returns the offsets of those that are handed on."""
    return [
        handed_on.offset
        for offset in offsets
        for handed_on in order.receive(publication(offset), StreamPosition(offset, epoch))
    ]


def read(order: StreamOrder, top: int, *kept: int, epoch: str = E) -> list[int]:
    """Answer what was asked; returns the offsets of those that are handed on."""
    history = History(tuple(map(publication, kept)), StreamPosition(top, epoch))
    return [handed_on.offset for handed_on in order.end_read(history)]


def lose(order: StreamOrder, top: int, *kept: int, epoch: str = E) -> None:
    """Answer what is asked by what does not continue the stream, so that it begins anew."""
    order.begin_read()
    with pytest.raises(StreamLost):
        read(order, top, *kept, epoch=epoch)
    order.begin_read()


def start(order: StreamOrder, offset: int, epoch: str = E) -> list[int]:
    return [handed_on.offset for handed_on in order.start(StreamPosition(offset, epoch))]
