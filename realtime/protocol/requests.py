"""What operators learn from requests of clients: channels of refused commands, and libraries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from realtime.errors import Disconnect
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    Command,
    ConnectRequest,
    HistoryRequest,
    Method,
    PublishRequest,
    SubRefreshRequest,
    SubscribeRequest,
)

_SHAPES: Mapping[Method, type[Struct]] = {
    Method.SUBSCRIBE: SubscribeRequest,
    Method.UNSUBSCRIBE: ChannelRequest,
    Method.PUBLISH: PublishRequest,
    Method.PRESENCE: ChannelRequest,
    Method.PRESENCE_STATS: ChannelRequest,
    Method.HISTORY: HistoryRequest,
    Method.SUB_REFRESH: SubRefreshRequest,
}
"""Method → its request, for those about a channel."""

LONGEST = 4096
"""Bytes of a request that is read again. A longer one carries data, and is not worth it."""

MAX_LIBRARY = 64
"""Characters of the name and version of a client library that are kept."""


def library_of(request: ConnectRequest) -> str:
    """Return how a client library names itself. Clients with the same one share the text."""
    text = f"{request.name or ''} {request.version or ''}".strip()
    return sys.intern(text[:MAX_LIBRARY]) if text else ""


def channel_of(command: Command, codec: Codec) -> ChannelName:
    """Return the channel that a command is about; "" if there is none, or it is not known."""
    if command.method is None or command.params is None or len(command.params) > LONGEST:
        return ""
    shape = _SHAPES.get(command.method)
    if shape is None:
        return ""
    with suppress(Disconnect):
        return getattr(codec.params(command, shape), "channel", "") or ""
    return ""
