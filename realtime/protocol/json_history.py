"""The request for history in JSON.

Clients of the second generation write `limit`, `since` and `reverse` beside the channel. Those of
the first may write them there, too, but Centrifugo 2 ignores them, and so does the service. The
client of this package speaks the first generation, and writes them in `part`, which no other
client sends.

docs/protocol.md, 3.16 and 16.5.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct

from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import ABSENT, UINT64_MAX, HistoryRequest, StreamPosition

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
# msgspec's bounds end at 63 bits; `checked_offset` refuses what is above UINT64_MAX
UInt64 = Annotated[int, Meta(ge=0)]

_NULL = Raw(b"null")


class _Part(Struct, forbid_unknown_fields=True, gc=False):
    limit: Int32 | None = None
    since: Raw = ABSENT
    reverse: bool | None = None


class _PartOfChannel(_Part, forbid_unknown_fields=True, gc=False):
    channel: str | None = None


class _ChannelWithPart(Struct, forbid_unknown_fields=True, gc=False):
    channel: str | None = None
    part: Raw = ABSENT


class _StreamPosition(Struct, forbid_unknown_fields=True, gc=False):
    offset: UInt64 | None = None
    epoch: str | None = None


_decode_part = ObjectDecoder(_Part)
_decode_part_of_channel = ObjectDecoder(_PartOfChannel)
_decode_channel_with_part = ObjectDecoder(_ChannelWithPart)
_decode_position = ObjectDecoder(_StreamPosition)


def history_request(text: bytes) -> HistoryRequest:
    """Return the request that params of the second generation are; without a limit it is 0.

    Raises:
        Malformed: the params do not decode.
    """
    wire = _decode_part_of_channel(text)
    return _request(wire.channel, wire, limit=0)


def first_history_request(text: bytes, limit: int) -> HistoryRequest:
    """Return the request that params of the first generation are.

    Args:
        text: the params.
        limit: that of a request without one.

    Raises:
        Malformed: the params do not decode.
    """
    wire = _decode_channel_with_part(text)
    part = _decode_part(bytes(wire.part)) if is_given(wire.part) else _Part()
    return _request(wire.channel, part, limit)


def _request(channel: str | None, part: _Part, limit: int) -> HistoryRequest:
    since = None
    if is_given(part.since):
        position = _decode_position(bytes(part.since))
        since = StreamPosition(checked_offset(position.offset), position.epoch or "")
    return HistoryRequest(
        channel, limit if part.limit is None else part.limit, since, bool(part.reverse)
    )


def is_given(value: Raw) -> bool:
    """Return whether a value is there, and not null."""
    return value is not ABSENT and value != _NULL


def checked_offset(offset: int | None) -> int:
    """Return an offset; 0 if there is none.

    Raises:
        Malformed: it is too large.
    """
    if offset is not None and offset > UINT64_MAX:
        raise Malformed("offset is larger than 64 bits")
    return offset or 0
