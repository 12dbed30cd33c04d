"""Messages of groups, as they travel and are kept.

A message is a dict of a channel layer, encoded by its serializer. A message that was numbered in a
stream has its position in front, because the script that gives it the position cannot decode it.
`engine.records` defines the content of a message.
"""

from __future__ import annotations

from typing import Protocol

from realtime.engine.records import Message
from realtime.protocol.messages import StreamPosition

NUMBERED = b"\xc1"
"""First byte of a message with a position: no serializer begins with it. What follows is
`offset:epoch:` and the message."""


class MessageSerializer(Protocol):
    """Encodes messages, and may encrypt them: one of `channels_redis.serializers`."""

    def serialize(self, message: Message) -> bytes: ...

    def deserialize(self, data: bytes) -> Message: ...


def decode(serializer: MessageSerializer, data: bytes) -> Message:
    """Return a message with its `offset` and `epoch`, where it has a position.

    Raises:
        Exception: no serializer wrote this. Each serializer has exceptions of its own.
    """
    if data[:1] != NUMBERED:
        return serializer.deserialize(data)
    offset, epoch, rest = data.split(b":", 2)
    return positioned(serializer.deserialize(rest), StreamPosition(int(offset[1:]), epoch.decode()))


def positioned(content: Message, position: StreamPosition) -> Message:
    """Return a message with its position."""
    return {**content, "offset": position.offset, "epoch": position.epoch}
