"""Results of test clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from realtime.protocol.messages import StreamPosition
from realtime.server_api.queries import ClientInfo
from realtime.testing.outbox import Published


@dataclass(frozen=True, slots=True)
class Received:
    """A publication that a client received.

    `offset` is 0 in a channel without history; `info` is that of a publishing client.
    """

    channel: str
    data: Any
    offset: int = 0
    info: ClientInfo | None = None


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The result of a subscribe command.

    `publications`: those that were missed, oldest first. `position`: of the last publication, None
    in a channel without recovery. `ttl`: seconds.
    """

    recovered: bool = False
    publications: tuple[Received, ...] = ()
    position: StreamPosition | None = None
    expires: bool = False
    ttl: int = 0


@dataclass(frozen=True, slots=True)
class Resumed:
    """The result of a reconnect.

    `recovered`: whether nothing is missing in any channel. `missed`: the publications since the
    connection was lost, channel by channel, oldest first.
    """

    recovered: bool
    missed: list[Published] = field(default_factory=list)
    subscriptions: Mapping[str, Subscribed] = field(default_factory=dict)
    """Channel → the result of its subscribe command."""


def read_publication(channel: str, shape: Mapping[str, Any]) -> Received:
    """Read a publication of the JSON protocol, with either form of offsets."""
    return Received(channel, shape.get("data"), _offset(shape), shape.get("info"))


def read_subscribed(channel: str, shape: Mapping[str, Any]) -> Subscribed:
    """Read a subscribe result of the JSON protocol, with either form of offsets."""
    position = None
    if shape.get("recoverable"):
        position = StreamPosition(_offset(shape), shape.get("epoch", ""))
    missed = [read_publication(channel, each) for each in shape.get("publications", ())]
    missed.sort(key=lambda publication: publication.offset)  # with seq and gen: newest first
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
