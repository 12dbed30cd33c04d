"""The request for history in JSON. Clients of both generations write it in the same way."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw, Struct

from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import ABSENT, UINT64_MAX, HistoryRequest, StreamPosition

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
# msgspec's bounds end at 63 bits; `checked_offset` refuses what is above UINT64_MAX
UInt64 = Annotated[int, Meta(ge=0)]

_NULL = Raw(b"null")


class _HistoryRequest(Struct, forbid_unknown_fields=True, gc=False):
    channel: str | None = None
    limit: Int32 | None = None
    since: Raw = ABSENT
    reverse: bool | None = None


class _StreamPosition(Struct, forbid_unknown_fields=True, gc=False):
    offset: UInt64 | None = None
    epoch: str | None = None


_decode_history = ObjectDecoder(_HistoryRequest)
_decode_position = ObjectDecoder(_StreamPosition)


def history_request(text: bytes, limit: int) -> HistoryRequest:
    """Return the request that its params are.

    Args:
        text: the params.
        limit: that of a request without one.

    Raises:
        Malformed: the params do not decode.
    """
    wire = _decode_history(text)
    since = None
    if is_given(wire.since):
        position = _decode_position(bytes(wire.since))
        since = StreamPosition(checked_offset(position.offset), position.epoch or "")
    return HistoryRequest(
        wire.channel, limit if wire.limit is None else wire.limit, since, bool(wire.reverse)
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
