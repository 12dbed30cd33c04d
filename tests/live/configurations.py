"""Option sets of the live tests, few on purpose: each one is a server process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.protocol_client import ProtocolClient
from tests.server import Server

Serve = Callable[..., Server]
Connect = Callable[..., Awaitable[ProtocolClient]]
"""The fixture `connect`."""

Options = dict[str, Any]

KEPT = {"history_size": 3, "history_lifetime": 60}

NAMESPACES: list[dict[str, Any]] = [
    {"name": "ns"},
    {"name": "anonymous", "anonymous": True, "presence": True},
    {"name": "joined", "join_leave": True, "presence": True},
    {"name": "present", "presence": True},
    {"name": "hidden", "presence": True, "presence_disable_for_client": True}
    | KEPT
    | {"history_disable_for_client": True},
    {"name": "open", "publish": True},
    {"name": "members", "publish": True, "subscribe_to_publish": True},
    {"name": "closed", "subscribe_to_publish": True},
    {"name": "kept", "publish": True} | KEPT,
    {"name": "size_only", "history_size": 3},
    {"name": "lifetime_only", "history_lifetime": 60},
    {"name": "recover", "history_recover": True, "publish": True, "presence": True} | KEPT,
    {"name": "brief", "history_recover": True, "history_size": 3, "history_lifetime": 1},
    {"name": "long", "history_recover": True, "history_size": 5000, "history_lifetime": 60},
    {"name": "server_side", "server_side": True},
    {"name": "proxied", "proxy_subscribe": True},
    {"name": "proxied_publish", "publish": True, "proxy_publish": True},
    {
        "name": "proxied_members",
        "publish": True,
        "subscribe_to_publish": True,
        "proxy_publish": True,
    },
    {"name": "proxied_closed", "proxy_publish": True},
]

MAIN: Options = {
    "namespaces": NAMESPACES,
    "client_expired_close_delay": 1,
    "client_expired_sub_close_delay": 1,
}
"""Every kind of channel; positions as seq and gen; short windows after an expiry."""

OFFSET: Options = {**MAIN, "v3_use_offset": True}
"""As MAIN, positions as offset."""

LIMITED: Options = {
    "namespaces": NAMESPACES,
    "client_channel_limit": 2,
    "client_user_connection_limit": 2,
}

INSECURE: Options = {"namespaces": NAMESPACES, "client_insecure": True}

PERSONAL_AT_TOP: Options = {
    "user_subscribe_to_personal": True,
    "client_anonymous": True,
    "anonymous": True,
    "presence": True,
}

BAD_REQUEST = (3003, '{"reason":"bad request","reconnect":false}')
INVALID_TOKEN = (3002, '{"reason":"invalid token","reconnect":false}')
EXPIRED = (3005, '{"reason":"expired","reconnect":true}')
SUBSCRIPTION_EXPIRED = (3006, '{"reason":"subscription expired","reconnect":true}')
STALE = (3007, '{"reason":"stale","reconnect":false}')
SHUTDOWN = (3001, '{"reason":"shutdown","reconnect":true}')
FORCED = (3012, '{"reason":"force disconnect","reconnect":false}')
CONNECTION_LIMIT = (3013, '{"reason":"connection limit","reconnect":false}')
TOO_BIG = (1009, "")

NAMESPACE_NOT_FOUND = {"code": 102, "message": "namespace not found"}
PERMISSION_DENIED = {"code": 103, "message": "permission denied"}
METHOD_NOT_FOUND = {"code": 104, "message": "method not found"}
ALREADY_SUBSCRIBED = {"code": 105, "message": "already subscribed"}
LIMIT_EXCEEDED = {"code": 106, "message": "limit exceeded"}
BAD_REQUEST_ERROR = {"code": 107, "message": "bad request"}
NOT_AVAILABLE = {"code": 108, "message": "not available"}
UNRECOVERABLE_POSITION = {"code": 112, "message": "unrecoverable position"}
TOKEN_EXPIRED = {"code": 109, "message": "token expired"}

ERRORS = {
    error["code"]: error
    for error in (
        NAMESPACE_NOT_FOUND,
        PERMISSION_DENIED,
        METHOD_NOT_FOUND,
        ALREADY_SUBSCRIBED,
        LIMIT_EXCEEDED,
        BAD_REQUEST_ERROR,
        NOT_AVAILABLE,
        TOKEN_EXPIRED,
    )
}
"""Code → error; the tables of section 5.1, with the one message our design changes."""


def info_of(client: ProtocolClient, user: str = "17") -> dict[str, Any]:
    """The client info of a connection without further info."""
    return {"user": user, "client": client.client}
