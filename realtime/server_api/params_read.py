"""Params of `POST /api/<method>` as what operations take: data, publications, positions."""

from __future__ import annotations

import base64
import binascii

from msgspec import Raw

from realtime import payload
from realtime.cluster.member import NewPublication
from realtime.engine.once import Once
from realtime.engine.versions import MAX_EPOCH_LENGTH, Version
from realtime.errors import BadRequest
from realtime.payload import Payload
from realtime.protocol.messages import ABSENT, UINT64_MAX, StreamPosition
from realtime.server_api import params_v2


def new_of(channel: str, data: Payload, params: params_v2.Data) -> NewPublication:
    """Return a publication; raise BadRequest if a version or a position is too large."""
    return NewPublication(
        channel,
        data,
        params.tags or None,
        Once(params.idempotency_key) if params.idempotency_key else None,
        bool(params.skip_history),
        _version(params),
        None if params.expect is None else position_of(params.expect),
    )


def _version(params: params_v2.Data) -> Version | None:
    number, epoch = params.version or 0, params.version_epoch or ""
    if number > UINT64_MAX or len(epoch) > MAX_EPOCH_LENGTH:
        raise BadRequest
    return Version(number, epoch) if number else None


def data_of(params: params_v2.Data) -> Payload:
    """Return the data to publish.

    Raises:
        BadRequest: they are absent or not JSON.
    """
    data = payload_of(params.data, params.b64data)
    if data is None:
        raise BadRequest
    return data


def payload_of(value: Raw, base64_value: str | None = None) -> Payload | None:
    """Return a value as a payload; None where it is absent. The one in Base64 comes first.

    Raises:
        BadRequest: it is not JSON, or not Base64.
    """
    try:
        if base64_value:
            return payload.check(base64.b64decode(base64_value, validate=True))
        return None if value == ABSENT else payload.check(bytes(value))
    except (ValueError, binascii.Error):
        raise BadRequest from None


def position_of(position: params_v2.Position) -> StreamPosition:
    """Return a position; raise BadRequest if its offset is too large."""
    offset = position.offset or 0
    if offset > UINT64_MAX:
        raise BadRequest
    return StreamPosition(offset, position.epoch or "")
