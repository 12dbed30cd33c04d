"""Shapes of JSON output that every generation and the server API share."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from realtime.payload import Payload, escape
from realtime.protocol.messages import ClientInfo

_encode = msgspec.json.Encoder().encode


class ClientInfoShape(Struct, omit_defaults=True, gc=False):
    """Client info, without the infos that it does not have."""

    user: str = msgspec.field()
    client: str = msgspec.field()
    conn_info: Raw | msgspec.UnsetType = msgspec.UNSET
    chan_info: Raw | msgspec.UnsetType = msgspec.UNSET


def raw(payload: Payload) -> Raw:
    """Return a payload as msgspec splices it into JSON output."""
    return Raw(payload.json)


def quote(text: str) -> bytes:
    """Return a string as JSON that is safe inside HTML and JavaScript."""
    return escape(_encode(text))


def client_info(info: ClientInfo) -> ClientInfoShape:
    """Return client info in its JSON shape."""
    return ClientInfoShape(
        info.user,
        info.client,
        msgspec.UNSET if info.conn_info is None else raw(info.conn_info),
        msgspec.UNSET if info.chan_info is None else raw(info.chan_info),
    )
