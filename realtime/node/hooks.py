"""What the service asks the site: the contract between commands and hooks.

Two parts answer: the functions a site registered (`realtime.hooks`), and HTTP endpoints of an
application elsewhere. Both are asked through `Hooks`, so a command does not know which.

A hook refuses with `Error` or `Disconnect`; any other exception is a failure of its own.

Spec: Application callbacks (proxy options). Beyond the spec: protocol-v2 of the reference
server decides what an answer means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from realtime.config.options import ChannelOptions
from realtime.errors import NotAvailable
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, UserID


class Handshake(Struct, frozen=True, gc=False):
    """What a connection began with, as far as hooks want to know."""

    headers: Mapping[str, str] = {}
    """Lower-case names; only those in `FORWARDED_HEADERS` and configured ones."""
    host: str = ""
    """The header Host: with an origin of another host it was another site that connected."""
    protocol: str = "json"
    """"json" or "protobuf"."""
    encoding: str = "json"
    """"binary" when payloads need not be JSON."""
    transport: str = "websocket"

    def __repr__(self) -> str:
        """For logs and error reports: headers hold cookies and other credentials."""
        return f"<Handshake {self.transport} {self.protocol} {sorted(self.headers)}>"


NO_HANDSHAKE = Handshake()
"""Where nobody wants to know."""

FORWARDED_HEADERS = (
    "origin",
    "user-agent",
    "cookie",
    "authorization",
    "x-forwarded-for",
    "x-real-ip",
    "x-request-id",
)
"""The headers of a handshake that hooks see."""


class Caller(Struct, frozen=True, gc=False):
    """Who asks: a client, and how it is connected."""

    client: ClientID
    user: UserID
    handshake: Handshake


class Identity(Struct, frozen=True, gc=False):
    """Who a client without a token is. `expires_at` in Unix seconds, None for never."""

    user: UserID
    info: Payload | None = None
    channels: tuple[ChannelName, ...] = ()
    expires_at: float | None = None
    data: Payload | None = None
    """For the client, in the connect reply."""
    auth_session: str = ""
    """The auth session it belongs to; "" for none. See `hooks.login`."""
    server_side_refresh: bool = False
    """Whether `refresh` is asked when it expires; otherwise the client has to refresh."""
    visible: bool = True
    """False for an observer, who watches the channels and does nothing else."""


class Refresh(Struct, frozen=True, gc=False):
    """A connection goes on. `expires_at` in Unix seconds."""

    expires_at: float
    info: Payload | None = None
    """Replaces the connection info, when given."""


class Hooks(Protocol):
    """What commands ask. Every coroutine is bounded in time."""

    refreshes: bool
    """Whether connections are refreshed here, and not by tokens of the client."""
    wants_handshake: bool
    """Whether anything is asked at all: otherwise connections need not remember headers."""
    wants_messages: bool
    """Whether `message` does anything."""

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        """Who is a client that brings no token? None: nobody knows."""
        ...

    async def refresh(self, caller: Caller, auth_session: str) -> Refresh | None:
        """May an expiring connection go on? None: it has expired.

        `auth_session`: the one it belongs to, "" for none.

        Raises:
            Disconnect: it may not, and is to be closed so.
            InternalError: nobody can tell just now.
            Error: it may not.
        """
        ...

    def login_ended(self, user: UserID, auth_session: str) -> None:
        """An auth session of a user ended; "" means that something changed about the user.

        Clients that are being identified just now must not slip through.
        """
        ...

    def decides(self, channel: ChannelName, options: ChannelOptions) -> bool:
        """Whether `subscribe` has to be asked about a channel."""
        ...

    async def subscribe(self, caller: Caller, channel: ChannelName, token: str) -> Payload | None:
        """May a client subscribe? Returns its channel info.

        Raises:
            Error, Disconnect: it may not.
        """
        ...

    async def publish(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, data: Payload
    ) -> Payload:
        """May a client publish? Returns what is published.

        Raises:
            Error, Disconnect: it may not.
        """
        ...

    async def rpc(self, caller: Caller, method: str, data: bytes) -> Payload | None:
        """Call a method of the site; None: it has nothing to say.

        Raises:
            NotAvailable: nobody answers.
            Error, Disconnect
        """
        ...

    async def message(self, caller: Caller, data: bytes) -> None:
        """A client sent something and wants no answer."""
        ...

    async def close(self) -> None:
        """Let go of everything. Bounded in time."""
        ...


class NoHooks:
    """The site has nothing to say: the options decide."""

    refreshes = False
    wants_handshake = False
    wants_messages = False

    async def connect(
        self, caller: Caller, data: bytes, name: str, version: str
    ) -> Identity | None:
        return None

    async def refresh(self, caller: Caller, auth_session: str) -> Refresh | None:
        return None

    def login_ended(self, user: UserID, auth_session: str) -> None:
        pass

    def decides(self, channel: ChannelName, options: ChannelOptions) -> bool:
        return options.proxy_subscribe

    async def subscribe(self, caller: Caller, channel: ChannelName, token: str) -> Payload | None:
        raise NotAvailable

    async def publish(
        self, caller: Caller, channel: ChannelName, options: ChannelOptions, data: Payload
    ) -> Payload:
        if options.proxy_publish:
            raise NotAvailable
        return data

    async def rpc(self, caller: Caller, method: str, data: bytes) -> Payload | None:
        raise NotAvailable

    async def message(self, caller: Caller, data: bytes) -> None:
        pass

    async def close(self) -> None:
        pass


class Events(Protocol):
    """Signals about clients and channels to the site; see `realtime.signals` for the kinds."""

    def emit(self, kind: str, **details: Any) -> None:
        """Queue a signal. Never waits and never raises."""
        ...

    async def drained(self, timeout: float) -> bool:
        """Wait until all queued signals were sent. Return False after `timeout` seconds."""
        ...

    async def close(self) -> None:
        """Send what is queued, and take nothing more. Bounded in time."""
        ...


class NoEvents:
    """Sends no signals."""

    def emit(self, kind: str, **details: Any) -> None:
        pass

    async def drained(self, timeout: float) -> bool:
        return True

    async def close(self) -> None:
        pass
