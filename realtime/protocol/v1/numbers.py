"""What both formats of the first generation share: above all its numbers.

Methods and kinds of pushes are numbers. A position has its offset in one number, or in two.

docs/protocol.md, 2.5 and 4.2; positions: 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from realtime.errors import Disconnect, DisconnectBadRequest
from realtime.protocol.codec import RequestDecoder
from realtime.protocol.messages import (
    Command,
    Method,
    Publication,
    StreamPosition,
    SubscribeResult,
)
from realtime.protocol.v1 import client_pb2

METHODS: Mapping[int, Method] = {
    number: Method(name.lower()) for name, number in client_pb2.MethodType.items()
}
"""Number on the wire → method."""

METHOD_NUMBERS: Mapping[str, int] = {method: number for number, method in METHODS.items()}
"""Method → number on the wire."""

ALL = -1
"""The limit of every history request: clients of this generation get all of it."""

_SEND = Method.SEND

SEQ_BITS = 32
SEQ_MAX = 2**SEQ_BITS - 1


class PushType(IntEnum):
    """The kinds of pushes the service sends."""

    PUBLICATION = 0
    JOIN = 1
    LEAVE = 2
    UNSUB = 3
    SUB = 5


def to_command(command_id: int, method: int, params: bytes | None) -> Command:
    """Build a command from what the wire says.

    Raises:
        DisconnectBadRequest: the ID is 0 and the command is not `send`, which has no reply.
    """
    known = METHODS.get(method)
    if command_id == 0 and known is not _SEND:
        raise DisconnectBadRequest
    return Command(command_id, known, params)


def split_offset(offset: int) -> tuple[int, int]:
    """Return an offset as (seq, gen): its low and its high 32 bits.

    The position variant of older clients.
    """
    return offset & SEQ_MAX, offset >> SEQ_BITS


def to_position(
    offset: int | None, seq: int | None, gen: int | None, epoch: str | None
) -> StreamPosition:
    """Return the position that a client names, in whichever variant it writes that.

    Args:
        offset: of the last publication it has seen; None from older clients.
        seq: low 32 bits of that offset, from older clients.
        gen: high 32 bits of that offset, from older clients.
        epoch: of the stream in which it has seen it.

    Beyond the spec: Centrifugo 2.8 reads `gen` as a multiple of 2**32 - 1 although it writes a
    multiple of 2**32. Clients return what they got, so only the inverse of `split_offset` recovers
    above 2**32 publications.
    """
    if seq or gen:
        offset = ((gen or 0) << SEQ_BITS) + (seq or 0)
    return StreamPosition(offset or 0, epoch or "")


class FirstGeneration(RequestDecoder):
    """What both codecs share. Their messages have the same fields. See `codec.Codec`."""

    generation = 1
    server_pings = False
    unidirectional = False
    separator = b""

    def __init__(self, use_offset: bool) -> None:
        """
        Args:
            use_offset: write positions as `offset`, and not as `seq` and `gen`.
        """
        self._use_offset = use_offset

    def refreshed(self, expires: bool, ttl: int) -> None:
        return None

    def ping(self) -> bytes:
        raise NotImplementedError("clients of the first generation send the pings")

    def disconnect(self, disconnect: Disconnect) -> None:
        return None

    def closing(self, disconnect: Disconnect) -> tuple[int, str]:
        return disconnect.code, disconnect.advice

    # parts of messages

    def _publication(self, publication: Publication) -> Any:
        raise NotImplementedError

    def _kept(self, publication: Publication) -> Any:
        """Return a publication of a history result: with UID, and always with the offset."""
        message = self._publication(publication)
        message.uid = publication.uid
        message.offset = publication.offset
        return message

    def _set_position(self, message: Any, position: StreamPosition | None) -> None:
        if position is not None:
            message.epoch = position.epoch
            self._set_offset(message, position.offset)

    def _set_offset(self, message: Any, offset: int) -> None:
        if self._use_offset:
            message.offset = offset
        else:
            message.seq, message.gen = split_offset(offset)

    def _set_recovery(self, message: Any, result: SubscribeResult) -> None:
        self._set_position(message, result.position)
        if result.position is not None:
            message.recovered = result.recovered
            publications = [self._publication(each) for each in result.publications]
            if not self._use_offset:
                # clients that know seq and gen expect the newest publication first
                publications.reverse()
            message.publications.extend(publications)
