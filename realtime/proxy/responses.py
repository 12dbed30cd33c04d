"""What an endpoint responds, and what that means.

    {"result": {...}}    or    {"error": {...}}    or    {"disconnect": {...}}

Keys match in any case, and unknown ones are ignored. A JSON null stands for a missing value,
except where any JSON is allowed: there it is a value.

Beyond the spec: as Centrifugo 2.8 reads them.
"""

from __future__ import annotations

import base64
import logging
from typing import Annotated, TypeVar

from msgspec import Meta, Raw, Struct

from realtime import payload
from realtime.engine.maps import check_key
from realtime.errors import BadRequest, Disconnect, Error, fitting
from realtime.node.hooks import Handshake, KeyChange
from realtime.payload import Payload
from realtime.protocol.json_stream import Malformed, ObjectDecoder
from realtime.protocol.messages import ABSENT, UInt32

logger = logging.getLogger("realtime.hooks")

DISCONNECT_CODE = 4000
"""Close code in place of one that no close frame can carry."""

R = TypeVar("R", bound=Struct)

_UnixSeconds = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class ProxyError(Exception):
    """An endpoint gave no usable response. The text says why, for the log, without any data of
    the request or the response."""


class _Response(Struct, forbid_unknown_fields=True):
    result: Raw = ABSENT
    error: Raw = ABSENT
    disconnect: Raw = ABSENT


class _Error(Struct, forbid_unknown_fields=True):
    code: UInt32 | None = None
    message: str | None = None
    temporary: bool | None = None


class _Disconnect(Struct, forbid_unknown_fields=True):
    code: UInt32 | None = None
    reason: str | None = None
    reconnect: bool | None = None


class InfoResult(Struct, forbid_unknown_fields=True):
    """Channel info of an allowed subscription, or connection info."""

    info: Raw = ABSENT
    b64info: str | None = None


class ConnectResult(InfoResult):
    """The identity of a client. `expire_at` is in Unix seconds, 0 for never."""

    user: str | None = None
    expire_at: _UnixSeconds | None = None
    data: Raw = ABSENT
    b64data: str | None = None
    channels: list[str] | None = None
    meta: Raw = ABSENT


class RefreshResult(InfoResult):
    """Whether a connection continues, and until when. `expire_at` is in Unix seconds."""

    expired: bool | None = None
    expire_at: _UnixSeconds | None = None


class DataResult(Struct, forbid_unknown_fields=True):
    """Data to publish, or the result of an RPC."""

    data: Raw = ABSENT
    b64data: str | None = None


class ChangeResult(DataResult):
    """The change of a map to make."""

    key: str | None = None


_decode_response = ObjectDecoder(_Response)
_decode_error = ObjectDecoder(_Error)
_decode_disconnect = ObjectDecoder(_Disconnect)

connect = ObjectDecoder(ConnectResult)
refresh = ObjectDecoder(RefreshResult)
subscribe = ObjectDecoder(InfoResult)
data = ObjectDecoder(DataResult)
change = ObjectDecoder(ChangeResult)


def read(body: bytes, decode_result: ObjectDecoder[R], *, refusals: bool = True) -> R | None:
    """Return the result in the body of a response; None when it has none.

    Args:
        decode_result: for the kind of result expected.
        refusals: whether `error` and `disconnect` count.

    Raises:
        Disconnect, Error: the response holds one; a disconnect takes precedence over an error,
            and both over a result.
        ProxyError: the body is not such a response.
    """
    response = _part("the response", body, _decode_response)
    if response is None:
        raise ProxyError("the response is not a JSON object")
    error = disconnect = None
    if refusals:
        disconnect = _part("disconnect", bytes(response.disconnect), _decode_disconnect)
        error = _part("error", bytes(response.error), _decode_error)
    result = _part("result", bytes(response.result), decode_result)
    if disconnect is not None:
        raise _to_disconnect(disconnect)
    if error is not None:
        raise Error.received(error.code or 0, error.message or "", error.temporary or False)
    return result


def _part(name: str, text: bytes, decode: ObjectDecoder[R]) -> R | None:
    if text in (b"", b"null"):
        return None
    try:
        return decode(text)
    except Malformed:
        raise ProxyError(f"{name} is not JSON, or a value in it has the wrong type") from None


def _to_disconnect(disconnect: _Disconnect) -> Disconnect:
    """Return the disconnect that an endpoint asked for, as far as a close frame can carry it."""
    code, reconnect = disconnect.code or 0, disconnect.reconnect or False
    if not 3000 <= code <= 4999:
        logger.warning(
            "An endpoint asked for a disconnect with code %d, using %d", code, DISCONNECT_CODE
        )
        code = DISCONNECT_CODE
    return Disconnect.received(code, fitting(disconnect.reason or "", reconnect), reconnect)


def info(result: InfoResult, by: Handshake) -> Payload | None:
    """Return the info in a result, None for none. It is JSON for every client, others read it.

    Args:
        by: the handshake of the client, whose encoding the endpoint uses.

    Raises:
        ProxyError: it is not JSON, or not base64.
    """
    return _checked(_of_encoding(result.info, result.b64info, by.encoding))


def data_for_client(result: ConnectResult | DataResult, by: Handshake) -> Payload | None:
    """Return the data in a result for the client that made the request; None for none.

    Args:
        by: the handshake of the client, whose encoding the endpoint uses.

    Raises:
        ProxyError: it is not JSON, or not base64.
    """
    raw = _of_encoding(result.data, result.b64data, by.encoding)
    if raw and by.encoding == "binary" and by.protocol == "protobuf":
        return Payload(raw, raw)  # any bytes: they become part of no JSON
    return _checked(raw)


def meta(result: ConnectResult) -> Payload | None:
    """Return what the endpoint says to hooks and proxies about a connection; None for nothing.

    Raises:
        ProxyError: it is not JSON.
    """
    return None if bytes(result.meta) == b"null" else _checked(bytes(result.meta))


def replacement(result: DataResult) -> Payload | None:
    """Return the data to publish instead, in either encoding; None to publish what was sent.

    Raises:
        ProxyError: it is not JSON, or not base64.
    """
    return _checked(bytes(result.data) or _decoded(result.b64data))


def changed(result: ChangeResult, asked: KeyChange) -> KeyChange:
    """Return the change to make instead. A removal has no data, whatever the result has.

    Raises:
        ProxyError: the key is none, or the data are not JSON, or not base64.
    """
    key = result.key or asked.key
    try:
        check_key(key)
    except BadRequest:
        raise ProxyError("key is too long, or holds a null character") from None
    return KeyChange(key, asked.data and (replacement(result) or asked.data))


def _of_encoding(plain: Raw, encoded: str | None, encoding: str) -> bytes:
    return _decoded(encoded) if encoding == "binary" else bytes(plain)


def _decoded(encoded: str | None) -> bytes:
    try:
        return base64.b64decode(encoded or "", validate=True)
    except ValueError:
        raise ProxyError("b64data or b64info is not base64") from None


def _checked(raw: bytes) -> Payload | None:
    if not raw:
        return None
    try:
        return payload.check(raw)
    except ValueError:
        raise ProxyError("data or info is not JSON") from None
