"""What the tests of following share: letting publications arrive, answering what is asked."""

from __future__ import annotations

import pytest

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.order import Follower, StreamLost
from tests.unit.parts import data

E, OTHER = "qKzD", "AAAA"


def publication(offset: int, uid: str = "") -> Publication:
    return Publication(data("1"), None, offset, uid or f"u{offset}")


def following(offset: int) -> Follower:
    """A follower that was told where the stream is."""
    follower = Follower()
    follower.ask()
    assert follower.start(StreamPosition(offset, E)) == []
    return follower


def arrive(follower: Follower, *offsets: int, epoch: str = E) -> list[int]:
    """Let publications arrive; returns the offsets of those that are handed on."""
    return [
        handed_on.offset
        for offset in offsets
        for handed_on in follower.arrived(publication(offset), StreamPosition(offset, epoch))
    ]


def read(follower: Follower, top: int, *kept: int, epoch: str = E) -> list[int]:
    """Answer what was asked; returns the offsets of those that are handed on."""
    history = History(tuple(map(publication, kept)), StreamPosition(top, epoch))
    return [handed_on.offset for handed_on in follower.read(history)]


def lose(follower: Follower, top: int, *kept: int, epoch: str = E) -> None:
    """Answer what is asked by what does not continue the stream, so that it begins anew."""
    follower.ask()
    with pytest.raises(StreamLost):
        read(follower, top, *kept, epoch=epoch)
    follower.ask()


def start(follower: Follower, offset: int, epoch: str = E) -> list[int]:
    return [handed_on.offset for handed_on in follower.start(StreamPosition(offset, epoch))]
