"""The contract of a codec: one format (JSON or Protobuf) of one generation of the protocol.

A codec turns frames into commands, and replies and pushes into encoded messages. An encoded message
has its own framing (a line break behind it, or its length in front), or the codec has a separator.
So joining messages into a frame is joining bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Protocol, TypeVar, cast

from google.protobuf.message import DecodeError
from msgspec import Struct

from realtime.errors import Disconnect, DisconnectBadRequest, Error
from realtime.protocol.json_stream import Malformed
from realtime.protocol.messages import (
    ChannelName,
    ClientInfo,
    Command,
    Publication,
    Result,
    SubscribeResult,
)

R = TypeVar("R", bound=Struct)


class Codec(Protocol):
    """One format of one generation. Shared by all clients that speak it."""

    generation: int
    """1 or 2."""
    format: str
    """"json" or "protobuf"."""
    binary: bool
    """Whether outgoing frames are binary ones."""
    server_pings: bool
    """Whether the server sends pings, and not the client."""
    unidirectional: bool
    """Whether a client sends the request of connect and nothing else."""
    separator: bytes
    """Stands between two messages of a frame."""

    def decode(self, frame: bytes) -> Iterator[Command]:
        """Yield the commands of a frame in order. Lazy, as `json_stream.decode_stream`.

        Raises:
            DisconnectBadRequest: at the first command that is malformed, or has no ID although
                it needs one.
        """

    def params(self, command: Command, shape: type[R]) -> R:
        """Decode the params of a command. Absent params are the empty request.

        Args:
            command: the command.
            shape: the request of its method.

        Raises:
            DisconnectBadRequest: the params are not such a request.
        """

    def result(self, command: Command, result: Result) -> bytes:
        """Encode the reply of a command that succeeded."""

    def error(self, command: Command, error: Error) -> bytes:
        """Encode the reply of a command that failed."""

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        """Encode the push of a publication."""

    def join(self, channel: ChannelName, info: ClientInfo) -> bytes:
        """Encode the push that tells that a client subscribed."""

    def leave(self, channel: ChannelName, info: ClientInfo) -> bytes:
        """Encode the push that tells that a client unsubscribed."""

    def subscribed(self, channel: ChannelName, result: SubscribeResult) -> bytes:
        """Encode the push that tells this client that the server subscribed it."""

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        """Encode the push that tells this client that the server unsubscribed it.

        Args:
            channel: the name of the channel.
            code: see `messages.UnsubscribeReason`; the first generation has none.
            reason: a short English text.
        """

    def refreshed(self, expires: bool, ttl: int) -> bytes | None:
        """Encode the push that tells this client its new expiry.

        Args:
            expires: whether the connection still expires.
            ttl: after so many seconds.

        Returns:
            None if the generation has no such push.
        """

    def ping(self) -> bytes:
        """Encode a ping; for codecs with `server_pings` only."""

    # closing

    def disconnect(self, disconnect: Disconnect) -> bytes | None:
        """Encode the last push of a connection that has no close frame.

        Returns:
            None if the generation has no such push.
        """

    def closing(self, disconnect: Disconnect) -> tuple[int, str]:
        """Return code and reason of a WebSocket close frame. The reason fits one."""


class RequestDecoder:
    """The part of a codec that decodes requests, by a table."""

    requests: ClassVar[Mapping[type[Struct], Callable[[bytes], Struct]]]
    """Request → decoder of its params."""
    no_params: ClassVar[bytes]
    """The encoded form of an empty request."""

    def params(self, command: Command, shape: type[R]) -> R:
        params = self.no_params if command.params is None else command.params
        try:
            return cast(R, self.requests[shape](params))
        except (Malformed, DecodeError):
            raise DisconnectBadRequest from None
