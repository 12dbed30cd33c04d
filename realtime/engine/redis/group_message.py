"""Messages of groups: what they carry, and how they travel and are kept.

A message is a dict of a channel layer, encoded by its serializer. A message that was numbered in a
stream has its position in front, because the script that gives it the position cannot decode it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from realtime.engine.versions import Version
from realtime.protocol.messages import StreamPosition
from realtime.redis.commands import Wait

NUMBERED = b"\xc1"
"""First byte of a message with a position: no serializer begins with it. What follows is
`offset:epoch:` and the message."""

Message = dict[str, Any]


class Serializer(Protocol):
    """Encodes messages, and may encrypt them: one of `channels_redis.serializers`."""

    def serialize(self, message: Message) -> bytes: ...

    def deserialize(self, data: bytes) -> Message: ...


class StreamSettings(NamedTuple):
    """A stream that numbers and keeps the messages of a group."""

    keys: tuple[str, str, str]
    """Stream, meta, epoch of new streams: see `lua/append.lua`."""
    size: int
    """Messages to keep."""
    lifetime: int
    """Seconds to keep them after the last one."""
    meta_lifetime: int = 0
    """Seconds to remember the position of an unused stream; 0: forever."""
    epoch_per_run: bool = False
    """Begin new epochs when Redis was restarted."""
    uid: str = ""
    """Of the publication in the message."""
    version: Version | None = None
    """The message is numbered, kept and sent only if this is newer than the last one."""
    expect: tuple[int, str] | None = None
    """The same, only if the top has this offset, and this epoch; "": any."""


class OnceSettings(NamedTuple):
    """An idempotency key: the message is numbered, kept and sent only if it was not used."""

    key: str
    """Where it is remembered: see `lua/append.lua`."""
    lifetime: int
    """Seconds to remember it."""


class GroupMessage(NamedTuple):
    """A message to a group."""

    group: str
    content: Message
    stream: StreamSettings | None = None
    """Where it is numbered and kept; None: nowhere."""
    send: bool = True
    """False: only number and keep it."""
    wait: Wait | None = None
    """Until replicas have the stream; None: not at all. Messages to one group keep their order if
    all of them have one, or none."""
    once: OnceSettings | None = None
    """Its idempotency key, if it has one."""


def decode(serializer: Serializer, data: bytes) -> Message:
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
