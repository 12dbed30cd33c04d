"""The contract of a client, as the node and its feeds see it."""

from __future__ import annotations

from typing import Protocol

from realtime.cluster.control import ServerSubscription
from realtime.cluster.survey import ClientReport
from realtime.errors import Disconnect
from realtime.node.outbox import Transport
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    SERVER_UNSUBSCRIBE,
    ChannelName,
    ClientID,
    ClientInfo,
    UnsubscribeReason,
    UserID,
)


class Tap(Protocol):
    """Takes copies of the frames of one client. Its methods never raise."""

    def received(self, frame: bytes) -> None:
        """Take a frame that the client sent."""

    def sent(self, frame: bytes) -> None:
        """Take a frame that leaves to the client."""

    def closed(self, code: int, reason: str) -> None:
        """Learn that the connection ends; code 0: the client went."""


class Subscriber(Protocol):
    """A client. Nothing here blocks or raises."""

    id: ClientID
    codec: Codec
    transport: Transport

    @property
    def user(self) -> UserID: ...

    @property
    def auth_session(self) -> str:
        """The auth session the connection belongs to, "" for none."""

    def refresh_until(self, expires_at: float | None, info: Payload | None) -> None:
        """Set when the connection expires, and tell the client.

        Args:
            expires_at: Unix seconds; a past time closes the connection, None ends its expiry.
            info: the connection info; None: it stays as it is.
        """

    async def refresh(self) -> None:
        """Ask the site whether the connection may go on."""

    @property
    def num_channels(self) -> int:
        """The number of its subscriptions, with those that are being made."""

    def report(self, max_channels: int) -> ClientReport:
        """Describe the connection for operators, with `max_channels` of its channels at most."""

    def mirror(self, tap: Tap | None) -> None:
        """Give a copy of each frame to a tap from now on; None ends it."""

    def push(self, message: bytes, /) -> None:
        """Queue an encoded message, unless the client is closing. Must not block or raise."""

    def notify(self, message: bytes, /) -> None:
        """As `push`, also while the client is closing: it gets its own leave."""

    def info_in(self, channel: ChannelName) -> ClientInfo:
        """Return the client info that others in the channel see."""

    async def subscribe(self, wanted: ServerSubscription) -> None:
        """Subscribe the client and push it, or begin to. Where that fails, the client is closed."""

    async def unsubscribe(
        self, channel: ChannelName, why: UnsubscribeReason = SERVER_UNSUBSCRIBE
    ) -> None:
        """Unsubscribe the client and push it; "" means from all its channels.

        The client gets the push even if it is not subscribed to the channel. A subscription that
        is still being made is not made; the client gets the push after its reply.
        """

    def ask_site(self, channel: ChannelName) -> None:
        """Begin to ask the site again whether the client may stay subscribed; "" means anywhere."""

    def has_position(self, channel: ChannelName) -> bool:
        """Return whether the client must not miss a publication in a channel.

        Its subscription may still be in the making.
        """

    def lose_position(self, channel: ChannelName) -> None:
        """Begin to end the subscription, or the connection; returns at once.

        A subscription without a position goes on, unless it reads the entries of a map.
        """

    def close(self, disconnect: Disconnect | None) -> None:
        """Begin to close the connection; returns at once."""

    def is_closing(self) -> bool:
        """Return whether closing has begun: nothing reaches the client any more."""
