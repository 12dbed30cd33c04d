"""What both formats of the second generation share: rules for commands and results.

docs/protocol.md, 15.2 and 15.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from realtime.errors import Disconnect, DisconnectBadRequest
from realtime.protocol.codec import RequestDecoder
from realtime.protocol.messages import Command, Method, Publication, SubscribeResult
from realtime.protocol.v2 import client_pb2, codes

METHODS: Mapping[int, Method] = {
    field.number: Method(field.name)
    for field in client_pb2.Command.DESCRIPTOR.fields
    if field.name != "id"
}
"""Number of the field that holds the request → method. In this order a command is searched."""

MAX_FILTER_DEPTH = 64
"""Nodes of a filter may be nested so deep; Protobuf's own limit is near that."""

PONG = Command(0, Method.PONG, None)
"""A command without an ID that does not send anything."""

_PING, _SEND = Method.PING, Method.SEND
_DELTAS = ("", "fossil")


def to_command(command_id: int, method: Method, params: bytes) -> Command:
    """Build a command that is not a pong.

    Args:
        command_id: 0 when absent.
        method: of the first request in the command.
        params: that request.

    Raises:
        DisconnectBadRequest: the service does not serve the method, or it needs an ID.
    """
    if method is _PING or (command_id == 0 and method is not _SEND):
        raise DisconnectBadRequest
    return Command(command_id, method, params)


def check_delta(delta: str | None) -> None:
    """Check that the kind of delta a client asks for exists. The service sends none.

    Raises:
        DisconnectBadRequest: it does not exist.
    """
    if delta and delta not in _DELTAS:
        raise DisconnectBadRequest


def recovered_publications(result: SubscribeResult) -> tuple[Publication, ...]:
    """Return the publications of a subscribe result: of a stream, if the position was recovered."""
    return result.publications if result.recovered or result.type else ()


def subscribe_offset(result: SubscribeResult) -> int:
    """Return the offset of a subscribe result with a position.

    A client that recovers gets the offset it asked for, and walks from there through the
    publications. If it got the newest one, it would take them for old ones. That of a map gets the
    newest one.
    """
    assert result.position is not None
    publications = () if result.type else recovered_publications(result)
    return publications[0].offset - 1 if publications else result.position.offset


class SecondGeneration(RequestDecoder):
    """What both codecs share. See `codec.Codec`."""

    generation = 2
    server_pings = True
    unidirectional = False

    def closing(self, disconnect: Disconnect) -> tuple[int, str]:
        return codes.closing(disconnect)
