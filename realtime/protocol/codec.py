"""The contract of a codec: one format (JSON or Protobuf) with one position variant.

A codec turns a frame into commands, and replies and pushes into encoded messages. An
encoded message carries its own framing (a trailing line break, or a length in front), so
joining messages into a frame is joining bytes.

Spec: Client WebSocket protocol; Versioning (position variants).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

from msgspec import Struct

from realtime.errors import Error
from realtime.protocol.messages import (
    ChannelName,
    ClientInfo,
    Command,
    Publication,
    Result,
    SubscribeRequest,
)

R = TypeVar("R", bound=Struct)

SEQ_BITS = 32
SEQ_MAX = 2**SEQ_BITS - 1


class Codec(Protocol):
    """One format with one position variant. Shared by all clients that speak it."""

    name: str
    """"json" or "protobuf"."""
    binary: bool
    """Whether outgoing frames are binary ones."""

    def decode(self, frame: bytes) -> Iterator[Command]:
        """Yield the commands of a frame in order.

        Raises:
            DisconnectBadRequest: at the first thing that is not a command.
        """
        ...

    def params(self, command: Command, shape: type[R]) -> R:
        """Decode the params of a command; the zero request when they are absent or null.

        Raises:
            DisconnectBadRequest: the params do not have this shape.
        """
        ...

    def result(self, command_id: int, result: Result) -> bytes:
        """Encode the reply of a command that succeeded."""
        ...

    def error(self, command_id: int, error: Error) -> bytes:
        """Encode the reply of a command that failed."""
        ...

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        """Encode the push of a publication."""
        ...

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        """Encode the push that says a client subscribed."""
        ...

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        """Encode the push that says a client unsubscribed."""
        ...

    def unsub(self, channel: ChannelName) -> bytes:
        """Encode the push that says the server unsubscribed this client."""
        ...


def split_offset(offset: int) -> tuple[int, int]:
    """An offset as the older variant writes it: (seq, gen), the low and the high 32 bits."""
    return offset & SEQ_MAX, offset >> SEQ_BITS


def requested_offset(request: SubscribeRequest) -> int:
    """The offset a client asks to recover from, in whichever variant it spoke.

    Beyond the spec: Centrifugo 2.8 reads `gen` as a multiple of 2**32 - 1 although it
    writes a multiple of 2**32; clients hand back what they were given, so the inverse of
    `split_offset` is the only reading that recovers above 2**32 publications.
    """
    if request.seq or request.gen:
        return ((request.gen or 0) << SEQ_BITS) + (request.seq or 0)
    return request.offset or 0
