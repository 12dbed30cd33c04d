"""The contract of a codec: one format (JSON or Protobuf) of one generation of the protocol.

A codec turns frames into commands, and replies and pushes into encoded messages. An encoded message
has its own framing (a line break behind it, or its length in front), so joining messages into a
frame is joining bytes.
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
)

R = TypeVar("R", bound=Struct)


class Codec(Protocol):
    """One format of one generation. Shared by all clients that speak it."""

    generation: int
    """1: the protocol of docs/protocol.md."""
    format: str
    """"json" or "protobuf"."""
    binary: bool
    """Whether outgoing frames are binary ones."""
    server_pings: bool
    """Whether the server sends pings, and not the client."""

    def decode(self, frame: bytes) -> Iterator[Command]:
        """Yield the commands of a frame in order. Lazy, as `json_stream.decode_stream`.

        Raises:
            DisconnectBadRequest: at the first command that is malformed, or has no ID although
                it needs one.
        """
        ...

    def params(self, command: Command, shape: type[R]) -> R:
        """Decode the params of a command. Absent params are the empty request.

        Args:
            command: the command.
            shape: the request of its method.

        Raises:
            DisconnectBadRequest: the params are not such a request.
        """
        ...

    def result(self, command: Command, result: Result) -> bytes:
        """Encode the reply of a command that succeeded."""
        ...

    def error(self, command: Command, error: Error) -> bytes:
        """Encode the reply of a command that failed."""
        ...

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        """Encode the push of a publication."""
        ...

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        """Encode the push that tells that a client subscribed."""
        ...

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        """Encode the push that tells that a client unsubscribed."""
        ...

    def unsub(self, channel: ChannelName) -> bytes:
        """Encode the push that tells this client that the server unsubscribed it."""
        ...
