"""What clients of a test get to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from realtime.protocol.messages import StreamPosition
from realtime.server_api.functions import ClientInfo
from realtime.testing.outbox import Published


@dataclass(frozen=True, slots=True)
class Received:
    """A publication that reached a client.

    `offset` is 0 in a channel without history; `info` says who published, if a client did.
    """

    channel: str
    data: Any
    offset: int = 0
    info: ClientInfo | None = None


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What the reply to a subscribe command says.

    `publications`: what was missed, oldest first. `position`: where the client is, None in a
    channel without recovery. `ttl` in seconds.
    """

    recovered: bool = False
    publications: tuple[Received, ...] = ()
    position: StreamPosition | None = None
    expires: bool = False
    ttl: int = 0


@dataclass(frozen=True, slots=True)
class Resumed:
    """What the client got when it came back.

    `recovered`: nothing is missing, in any channel. `missed`: what was published meanwhile,
    channel by channel, oldest first.
    """

    recovered: bool
    missed: list[Published] = field(default_factory=list)
    subscriptions: Mapping[str, Subscribed] = field(default_factory=dict)
    """Channel → what its subscribe reply says."""


def read_publication(channel: str, shape: Mapping[str, Any]) -> Received:
    """A publication on the wire, in either variant of positions."""
    return Received(channel, shape.get("data"), _offset(shape), shape.get("info"))


def read_subscribed(channel: str, shape: Mapping[str, Any]) -> Subscribed:
    """A subscribe result on the wire, in either variant of positions."""
    position = None
    if shape.get("recoverable"):
        position = StreamPosition(_offset(shape), shape.get("epoch", ""))
    missed = [read_publication(channel, each) for each in shape.get("publications", ())]
    missed.sort(key=lambda publication: publication.offset)  # the older variant: newest first
    return Subscribed(
        recovered=shape.get("recovered", False),
        publications=tuple(missed),
        position=position,
        expires=shape.get("expires", False),
        ttl=shape.get("ttl", 0),
    )


def _offset(shape: Mapping[str, Any]) -> int:
    offset: int = shape.get("offset", 0)
    seq: int = shape.get("seq", 0)
    gen: int = shape.get("gen", 0)
    return offset or gen * 2**32 + seq
