"""The request of a listener, from its address and its headers.

    GET /connection/events?channel=news&channel=$team&channel_token=&channel_token=...&since=ID
    Last-Event-ID: ID
    Authorization: Bearer ...

docs/protocol.md, 17.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.clients.commands.listening import ListenRequest
from realtime.protocol import event_ids
from realtime.protocol.messages import ChannelName
from realtime.protocol.v2.events import RESERVED
from realtime.transports.asgi import Scope, header
from realtime.transports.streaming.first_frame import fields_of

MAX_CHANNELS = 64
"""Channels of one listener: each event holds the position in every one of them."""

SECRETS = frozenset(("token", "channel_token"))
"""Fields of the query that hold tokens."""

_BEARER = "bearer "


class BadListenRequest(Exception):
    """The request is not one. Its text says why."""


class Over(Exception):
    """The server has told the listener not to come back."""


def read(scope: Scope, query: bytes) -> ListenRequest:
    """Return what a listener asks for.

    Args:
        scope: of the request.
        query: its query string.

    Raises:
        BadListenRequest: the request is not one.
        Over: the listener must not come back.
    """
    fields = fields_of(query)
    channels = _channels(fields)
    tokens = _all(fields, "channel_token") or [""] * len(channels)
    if len(tokens) != len(channels):
        raise BadListenRequest("there must be one channel_token for each channel, or none at all")
    text = header(scope, b"last-event-id") or _one(fields, "since")
    if text == event_ids.END:
        raise Over
    try:
        known = event_ids.decode(text, channels) if text else {}
    except ValueError:
        known, is_lost = {}, True
    else:
        is_lost = False
    left = tuple(channel for channel, position in known.items() if position is None)
    if len(left) == len(channels):
        raise Over
    return ListenRequest(
        {
            channel: token
            for channel, token in zip(channels, tokens, strict=True)
            if channel not in left
        },
        token=_bearer(scope) or _one(fields, "token"),
        since={channel: since for channel, since in known.items() if since is not None},
        left=left,
        is_named=len(channels) > 1,
        is_lost=is_lost,
        is_text=_is_text(fields),
    )


def _channels(fields: Sequence[tuple[str, str]]) -> list[ChannelName]:
    channels = _all(fields, "channel")
    if not channels:
        raise BadListenRequest("name a channel")
    if len(channels) > MAX_CHANNELS:
        raise BadListenRequest(f"more than {MAX_CHANNELS} channels")
    if len(set(channels)) < len(channels):
        raise BadListenRequest("a channel is named twice")
    for channel in channels:
        if not channel:
            raise BadListenRequest("the name of a channel is empty")
        # others are refused as for every client; these would be lines of their own in an event
        if any(character < " " for character in channel):
            raise BadListenRequest("the name of a channel has a control character")
        if len(channels) > 1 and channel in RESERVED:
            raise BadListenRequest(f"a channel {channel!r} can be listened to by itself only")
    return channels


def _is_text(fields: Sequence[tuple[str, str]]) -> bool:
    name = _one(fields, "format")
    if name not in ("", "json", "text"):
        raise BadListenRequest("format is json or text")
    return name == "text"


def _bearer(scope: Scope) -> str:
    """Return the token in the header Authorization; "" for none."""
    value = header(scope, b"authorization") or ""
    is_token = value[: len(_BEARER)].lower() == _BEARER
    return value[len(_BEARER) :].strip() if is_token else ""


def _all(fields: Sequence[tuple[str, str]], name: str) -> list[str]:
    return [value for key, value in fields if key == name]


def _one(fields: Sequence[tuple[str, str]], name: str) -> str:
    """Return the value of a field that may be there once; "" if it is missing."""
    values = _all(fields, name)
    if len(values) > 1:
        raise BadListenRequest(f"{name} is there twice")
    return values[0] if values else ""
