"""The contract of hooks: what the site decides, and the signals that it gets.

Commands call `Hooks` and do not know who answers: a function that the site registered
(`realtime.hooks`), or an HTTP endpoint of an application elsewhere (`realtime.proxy`).

A hook refuses by raising `Error` or `Disconnect`. Any other exception is a failure of the hook.

docs/protocol.md, 7.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from realtime.auth.claims import TokenSubscription
from realtime.config.options import ChannelOptions
from realtime.errors import DisconnectBadRequest, NotAvailable
from realtime.metrics import Durations
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, UserID

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
"""One for all connections: each `{}` would cost 64 bytes."""


class Handshake(Struct, frozen=True, gc=False):
    """The HTTP request that opened a connection, as hooks see it."""

    headers: Mapping[str, str] = NO_HEADERS
    """Lower-case name → value, of FORWARDED_HEADERS and configured headers only."""
    host: str = ""
    """The header Host. An origin with another host means that a page of another site connected."""
    protocol: str = "json"
    """"json" or "protobuf"."""
    encoding: str = "json"
    """"binary" when payloads need not be JSON."""
    transport: str = "websocket"
    site_headers: Mapping[str, str] = NO_HEADERS
    """Lower-case name → value, of `Hooks.site_headers` only. Neither hooks nor proxies see them."""
    is_secure: bool = False
    """Whether the ASGI server says that it came by TLS."""
    address: str = ""
    """The address of the client, for logs; "" if it is not known. There without hooks, too."""
    emulated: Mapping[str, str] = NO_HEADERS
    """Lower-case name → value: what the client sent in its connect request in place of headers.
    For proxies that list the name. The client writes them, whatever stands in front of it."""
    withheld: Mapping[str, str] = NO_HEADERS
    """What browsers add for the user, where a page connects that may not use it. Neither hooks nor
    proxies see it."""

    def __repr__(self) -> str:
        """For logs and error reports: headers hold cookies and other credentials."""
        return f"<Handshake {self.transport} {self.protocol} {sorted(self.headers)}>"


NO_HANDSHAKE = Handshake()
"""For clients that were not opened by a request."""

FORWARDED_HEADERS = (
    "origin",
    "user-agent",
    "cookie",
    "authorization",
    "x-forwarded-for",
    "x-real-ip",
    "x-request-id",
)
"""The headers of a handshake that hooks see without configuration."""


EMULATED_MAX_BYTES = 8 * 1024
"""Limit for all headers of a connect request that are kept, as each connection keeps them."""

_NOT_IN_A_HEADER = re.compile(r"[^\t -~\x80-\xff]")


def forwarded_headers(extra: Iterable[str] | None) -> frozenset[str]:
    """Return the names of the headers that hooks see, in lower case.

    Args:
        extra: more of them; see `Config.handshake_headers`.
    """
    return frozenset((*FORWARDED_HEADERS, *map(str.lower, extra or ())))


def emulated_headers(sent: Mapping[str, str], names: Container[str]) -> dict[str, str]:
    """Return the headers of a connect request that the site wants, by lower-case names.

    Args:
        sent: by the client.
        names: `Hooks.emulated_headers`.

    Raises:
        DisconnectBadRequest: no request can carry one of these values, or they are too large.
    """
    wanted = {name.lower(): value for name, value in sent.items() if name.lower() in names}
    if sum(len(name) + len(value) for name, value in wanted.items()) > EMULATED_MAX_BYTES:
        raise DisconnectBadRequest
    if any(_NOT_IN_A_HEADER.search(value) for value in wanted.values()):
        raise DisconnectBadRequest
    return wanted


class Caller(Struct, frozen=True, gc=False):
    """The client that sent a command, and how it is connected."""

    client: ClientID
    user: UserID
    handshake: Handshake
    meta: Payload | None = None
    """What the token of the connection, or the site, says to hooks and proxies alone."""


class Identity(Struct, frozen=True, gc=False):
    """The user of a client. `expires_at`: Unix seconds, None for never."""

    user: UserID
    info: Payload | None = None
    channels: tuple[ChannelName, ...] = ()
    expires_at: float | None = None
    data: Payload | None = None
    """Goes to the client in the connect reply."""
    auth_session: str = ""
    """The auth session it belongs to; "" for none. See `hooks.login`."""
    server_side_refresh: bool = False
    """Whether `Hooks.refresh` is called at the expiry; otherwise the client refreshes."""
    visible: bool = True
    """False for an observer, who watches the channels and does nothing else."""
    subs: Mapping[ChannelName, TokenSubscription] = {}
    """Channel → what a token says about the server-side subscription, if it says anything."""
    meta: Payload | None = None
    """For hooks and proxies, and no client."""


class Refreshed(Struct, frozen=True, gc=False):
    """The new expiry of a connection. `expires_at`: Unix seconds."""

    expires_at: float
    info: Payload | None = None
    """Replaces the connection info, unless None."""


class Permission(Struct, frozen=True, gc=False):
    """That a client may subscribe."""

    info: Payload | None = None
    """The channel info."""
    ttl: float | None = None
    """Seconds until the site is asked again; None: it is not."""


class MapChange(Struct, frozen=True, gc=False):
    """What a client changes in a map."""

    key: str
    data: Payload | None = None
    """None: the key is removed."""


class Decider(StrEnum):
    """What of the site decides about a command in a channel."""

    NONE = "none"
    """Nothing: the options decide."""
    FUNCTION = "function"
    ENDPOINT = "endpoint"
    MISSING = "missing"
    """The options say that the site decides, and there is neither: error 108."""
    UNMATCHED = "unmatched"
    """The namespace has hooks, and the pattern of none matches: error 103."""


class Hooks:
    """Decisions of the site. In this class the options decide, as on a site without hooks.

    Every coroutine is bounded in time.
    """

    refreshes = False
    """Whether `refresh` decides about all connections, and not tokens of the client."""
    wants_handshake = False
    """Whether any hook exists; otherwise connections do not keep the headers."""
    wants_messages = False
    """Whether there is a hook for messages."""
    site_headers: tuple[str, ...] = ()
    """Lower-case names of headers that say which host and scheme a reverse proxy was asked for."""
    emulated_headers: frozenset[str] = frozenset()
    """Lower-case names of headers that a client may send in its connect request."""
    seconds: Mapping[str, Durations] = MappingProxyType({})
    """Kind of hook → how long the site took to answer."""

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        """Identify a client without a token; None if no hook knows it.

        Args:
            caller: the client; its user is "".
            data: JSON or bytes that the client sent along.
            name: of the client library.
            version: of the client library.

        Raises:
            Error, Disconnect: the site refuses the client.
        """
        return None

    async def refresh(self, caller: Caller, auth_session: str) -> Refreshed | None:
        """Return the new expiry of an expiring connection; None if it has expired.

        Args:
            caller: the client.
            auth_session: the auth session of the connection; "" for none.

        Raises:
            Disconnect: the connection must be closed with this disconnect.
            InternalError: the hook failed; ask again later.
            Error: the connection must be closed as expired.
        """
        return None

    def auth_session_of(self, handshake: Handshake) -> str:
        """Return the auth session that an HTTP request bears; "" for none.

        A request that a page of another site may have sent bears none.
        """
        return ""

    def trusts_page(self, handshake: Handshake) -> bool:
        """Return whether the page that sent a request may act with its cookies.

        True where the site decides nothing, so that no cookie is read.
        """
        return True

    def auth_session_ended(self, user: UserID, auth_session: str) -> None:
        """Refuse clients whose `connect` is under way if they belong to an ended auth session.

        Args:
            user: the user ID.
            auth_session: the auth session that ended; "" means that the user changed.
        """

    def decides(self, channel: ChannelName, options: ChannelOptions) -> bool:
        """Return whether `subscribe` must be called for a channel."""
        return options.proxy_subscribe

    async def subscribe(self, caller: Caller, channel: ChannelName, token: str) -> Permission:
        """Let a client subscribe to a channel, or stay subscribed.

        Args:
            caller: the client.
            channel: the name of the channel.
            token: what the client sent along, unverified; "" for nothing.

        Raises:
            Error, Disconnect: the client may not subscribe.
        """
        raise NotAvailable

    async def publish(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, data: Payload
    ) -> Payload:
        """Let a client publish, and return the data to publish.

        Args:
            caller: the client.
            channel: the name of the channel.
            options: the options of the channel.
            data: what the client sent.

        Raises:
            Error, Disconnect: the client may not publish.
        """
        if options.proxy_publish:
            raise NotAvailable
        return data

    async def put(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, change: MapChange
    ) -> MapChange:
        """Let a client change a map, and return the change to make; otherwise as `publish`."""
        if options.proxy_publish:
            raise NotAvailable
        return change

    async def rpc(self, caller: Caller, method: str, data: bytes) -> Payload | None:
        """Call a method of the site, and return its result, if it has one.

        Args:
            caller: the client.
            method: the name of the method; "" if the client names none.
            data: JSON or bytes that the client sent along.

        Raises:
            NotAvailable: there is neither a method nor an endpoint.
            MethodNotFound: there are methods, but not this one.
            Error, Disconnect: the method raised it.
        """
        raise NotAvailable

    async def message(self, caller: Caller, data: bytes) -> None:
        """Pass on a message from a client, to which there is no reply.

        Args:
            caller: the client.
            data: JSON or bytes that the client sent.
        """

    async def close(self) -> None:
        """Release threads and connections. Bounded in time."""


class Events:
    """Signals about clients and channels to the site; see `realtime.signals` for the kinds.

    Here they are those of a site without receivers.
    """

    dropped = 0
    """Signals that were dropped because receivers were too slow."""

    def emit(self, kind: str, **details: Any) -> None:
        """Queue a signal. Never waits and never raises."""

    async def drained(self, timeout: float) -> bool:
        """Wait until all queued signals were sent. Return False after `timeout` seconds."""
        return True

    async def close(self) -> None:
        """Send what is queued, and take nothing more. Bounded in time."""
