"""What an endpoint answers, and what its answers mean.

    {"result": {...}}    or    {"error": {...}}    or    {"disconnect": {...}}

Keys are matched without regard to case and unknown ones are ignored. JSON null is "not given",
except where any JSON may stand: there it is a value.

Beyond the spec: as Centrifugo 2.8 reads them.
"""

from __future__ import annotations

import base64
import logging
from typing import Annotated, TypeVar

from msgspec import Meta, Raw, Struct

from realtime import payload
from realtime.errors import CLOSE_REASON_MAX_BYTES, Disconnect, Error
from realtime.node.hooks import Handshake
from realtime.payload import Payload
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import ABSENT, UInt32

logger = logging.getLogger("realtime.hooks")

DISCONNECT_CODE = 4000
"""Close code in place of one that an application cannot close with."""

R = TypeVar("R", bound=Struct)

_UnixSeconds = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class NoAnswer(Exception):
    """No answer came, or none that means anything. The text says why, for the log: it holds
    nothing of what was asked or answered."""


class _Answer(Struct, forbid_unknown_fields=True):
    result: Raw = ABSENT
    error: Raw = ABSENT
    disconnect: Raw = ABSENT


class _Error(Struct, forbid_unknown_fields=True):
    code: UInt32 | None = None
    message: str | None = None


class _Disconnect(Struct, forbid_unknown_fields=True):
    code: UInt32 | None = None
    reason: str | None = None
    reconnect: bool | None = None


class ConnectResult(Struct, forbid_unknown_fields=True):
    """Who a client is. `expire_at` in Unix seconds, 0 for never."""

    user: str | None = None
    expire_at: _UnixSeconds | None = None
    info: Raw = ABSENT
    b64info: str | None = None
    data: Raw = ABSENT
    b64data: str | None = None
    channels: list[str] | None = None


class RefreshResult(Struct, forbid_unknown_fields=True):
    """Whether a connection goes on. `expire_at` in Unix seconds."""

    expired: bool | None = None
    expire_at: _UnixSeconds | None = None
    info: Raw = ABSENT
    b64info: str | None = None


class SubscribeResult(Struct, forbid_unknown_fields=True):
    """Channel info."""

    info: Raw = ABSENT
    b64info: str | None = None


class DataResult(Struct, forbid_unknown_fields=True):
    """What is published, or what a method returns."""

    data: Raw = ABSENT
    b64data: str | None = None


_decode_answer = ObjectDecoder(_Answer)
_decode_error = ObjectDecoder(_Error)
_decode_disconnect = ObjectDecoder(_Disconnect)

connect = ObjectDecoder(ConnectResult)
refresh = ObjectDecoder(RefreshResult)
subscribe = ObjectDecoder(SubscribeResult)
data = ObjectDecoder(DataResult)


def read(body: bytes, result: ObjectDecoder[R], *, refusals: bool = True) -> R | None:
    """The result of an answer; None when it has none.

    Args:
        refusals: whether `error` and `disconnect` are looked at.

    Raises:
        Disconnect, Error: the application says so; the first one wins, and both over a result.
        NoAnswer
    """
    answer = _part("the answer", body, _decode_answer)
    if answer is None:
        raise NoAnswer("the answer is no object")
    error = disconnect = None
    if refusals:
        disconnect = _part("disconnect", bytes(answer.disconnect), _decode_disconnect)
        error = _part("error", bytes(answer.error), _decode_error)
    given = _part("result", bytes(answer.result), result)
    if disconnect is not None:
        raise _disconnect(disconnect)
    if error is not None:
        raise Error(error.code or 0, error.message or "")
    return given


def _part(name: str, text: bytes, decode: ObjectDecoder[R]) -> R | None:
    if text in (b"", b"null"):
        return None
    try:
        return decode(text)
    except Malformed:
        raise NoAnswer(f"{name} is not JSON, or something in it is of the wrong type") from None


def _disconnect(given: _Disconnect) -> Disconnect:
    """A disconnect as given, as far as a close frame can carry it."""
    code, reconnect = given.code or 0, given.reconnect or False
    if not 3000 <= code <= 4999:
        logger.warning("An endpoint disconnects with code %d: %d is used", code, DISCONNECT_CODE)
        code = DISCONNECT_CODE
    reason = (given.reason or "")[:CLOSE_REASON_MAX_BYTES]
    while True:
        try:
            return Disconnect(code, reason, reconnect)
        except ValueError:
            reason = reason[:-1]  # too long for a close frame


def info(result: ConnectResult | RefreshResult | SubscribeResult, by: Handshake) -> Payload | None:
    """The info in a result; None for none. It is JSON in both encodings: others will read it.

    Raises:
        NoAnswer
    """
    return _checked(_of_encoding(result.info, result.b64info, by.encoding))


def data_for_client(result: ConnectResult | DataResult, by: Handshake) -> Payload | None:
    """The data in a result for the client that asked; None for none.

    Raises:
        NoAnswer
    """
    raw = _of_encoding(result.data, result.b64data, by.encoding)
    if raw and by.encoding == "binary" and by.protocol == "protobuf":
        return Payload(raw, raw)  # any bytes: they go into no JSON
    return _checked(raw)


def replacement(result: DataResult) -> Payload | None:
    """What is published instead, whatever the encoding; None for nothing.

    Raises:
        NoAnswer
    """
    return _checked(bytes(result.data) or _decoded(result.b64data))


def _of_encoding(plain: Raw, encoded: str | None, encoding: str) -> bytes:
    return _decoded(encoded) if encoding == "binary" else bytes(plain)


def _decoded(encoded: str | None) -> bytes:
    try:
        return base64.b64decode(encoded or "", validate=True)
    except ValueError:
        raise NoAnswer("b64data or b64info is not base64") from None


def _checked(raw: bytes) -> Payload | None:
    if not raw:
        return None
    try:
        return payload.check(raw)
    except ValueError:
        raise NoAnswer("data or info is not JSON") from None
