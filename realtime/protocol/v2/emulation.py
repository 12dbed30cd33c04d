"""The body of a request to `/emulation`: a frame of a client whose transport only goes down.

docs/protocol.md, 15.7.
"""

from __future__ import annotations

import msgspec
from google.protobuf.message import DecodeError
from msgspec import Raw, Struct

from realtime.payload import replace_lone_surrogates
from realtime.protocol.json_stream import ObjectDecoder
from realtime.protocol.messages import ABSENT
from realtime.protocol.v2 import client_pb2


class EmulationRequest(Struct, frozen=True, gc=False):
    """A frame, and where it belongs."""

    node: str
    """ID of the node that has the session."""
    session: str
    """The secret of the connection. It must not be logged."""
    frame: bytes | None
    """None: what the client sent is no frame. Answer as if the session were unknown."""


class _EmulationRequest(Struct, forbid_unknown_fields=True, gc=False):
    node: str | None = None
    session: str | None = None
    data: Raw = ABSENT


_decode = ObjectDecoder(_EmulationRequest)
_decode_text = msgspec.json.Decoder(str).decode


def decode_emulation_request(body: bytes, *, binary: bool) -> EmulationRequest:
    """Decode the body of a request.

    Args:
        body: whatever came.
        binary: whether the content type says Protobuf. In JSON the frame is a string.

    Raises:
        ValueError: the body is not such a message.
    """
    if binary:
        try:
            message = client_pb2.EmulationRequest.FromString(body)
        except DecodeError as error:
            raise ValueError(str(error)) from None
        return EmulationRequest(message.node, message.session, message.data)
    wire = _decode(body)
    return EmulationRequest(wire.node or "", wire.session or "", _frame(bytes(wire.data)))


def _frame(text: bytes) -> bytes | None:
    if not text.startswith(b'"'):
        return None
    try:
        return _decode_text(replace_lone_surrogates(text)).encode()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
