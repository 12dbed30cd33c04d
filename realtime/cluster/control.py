"""Control messages: what one node tells all nodes to do with a user's connections.

They travel as JSON in a stream, and nodes of the previous version read them: names and tags below
are part of that format.

docs/protocol.md, 6.4 (unsubscribe, disconnect).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from realtime import payload
from realtime.config.channel_options import ChannelOptions, Overrides
from realtime.engine.limits import NO_LIST, ListVersion
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, StreamPosition, UserID

CONTROL_OPTIONS = ChannelOptions(history_size=10_000, history_lifetime=600, history_recover=True)
"""Control messages are kept, so that a node that was cut off catches up."""


class Unsubscribe(
    msgspec.Struct, frozen=True, tag="unsubscribe", tag_field="do", omit_defaults=True
):
    """Unsubscribe a user's connections from a channel; "" means from all their channels."""

    user: UserID
    channel: ChannelName
    origin: str = ""
    """The ID of the node, or of the member, that sent the message."""
    ask: bool = False
    """Whether the site is asked again, and decides. Nodes of older versions unsubscribe."""


class DisconnectUser(msgspec.Struct, frozen=True, tag="disconnect", tag_field="do"):
    """Close a user's connections."""

    user: UserID
    code: int
    """Code of the disconnect; see `errors.DISCONNECTS`."""
    keep: ClientID = ""
    """The connection that stays."""
    origin: str = ""


class EndAuthSession(msgspec.Struct, frozen=True, tag="end_logins", tag_field="do"):
    """Close a user's connections of one auth session; "" refreshes those of all auth sessions."""

    user: UserID
    auth_session: str = msgspec.field(name="login")
    code: int = 3012
    """Code of the disconnect; see `errors.DISCONNECTS`."""
    origin: str = ""


# Messages about some of a user's connections are kinds of their own: older nodes would take those
# above for all connections. They ignore an unknown kind, and log that.


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Some connections of a user: those that all of the fields name."""

    user: UserID
    """"" for anonymous clients."""
    client: ClientID = ""
    """"" for every client."""
    session: str = ""
    """The session of the connection; "" for every one."""
    origin: str = ""


class UnsubscribeSome(Selection, frozen=True, tag="unsubscribe_some", tag_field="do"):
    """Unsubscribe some connections from a channel; "" means from all their channels."""

    channel: ChannelName


class DisconnectSome(Selection, frozen=True, tag="disconnect_some", tag_field="do"):
    """Close some connections."""

    code: int
    reason: str
    reconnect: bool
    keep: tuple[ClientID, ...] = ()
    """The clients that stay."""


class RefreshSome(Selection, frozen=True, tag="refresh_some", tag_field="do"):
    """Set when some connections expire, or close those that have."""

    expires_at: float | None = None
    """Unix seconds; None: they expire no more."""
    info: str | None = None
    """Connection info, JSON text; None: it stays as it is."""


class ServerSubscription(msgspec.Struct, frozen=True):
    """A subscription that the server makes."""

    channel: ChannelName
    info: Payload | None = None
    """The channel info."""
    data: Payload | None = None
    """For the client."""
    expires_at: float | None = None
    """Unix seconds; None for never."""
    since: StreamPosition | None = None
    """Where the client continues, if it is not subscribed yet."""
    overrides: Overrides | None = None
    """Options of the channel that are others for this subscription."""


class SubscribeSome(Selection, frozen=True, tag="subscribe", tag_field="do"):
    """Subscribe some connections to a channel."""

    channel: ChannelName
    info: str | None = None
    """Channel info, JSON text; None for none."""
    data: str | None = None
    """For the clients, JSON text; None for none."""
    expires_at: float | None = None
    """Unix seconds; None: the subscription does not expire."""
    since: StreamPosition | None = None
    """Where the clients continue."""
    overrides: dict[str, bool] | None = None
    """Options of the channel that are others for these subscriptions: those of `Overrides`."""

    def subscription(self) -> ServerSubscription:
        """Return the subscription to make. Overrides that this version does not know have no
        effect."""
        return ServerSubscription(
            self.channel,
            _payload(self.info),
            _payload(self.data),
            self.expires_at,
            self.since,
            _overrides(self.overrides),
        )


class BlockUser(msgspec.Struct, frozen=True, tag="block", tag_field="do"):
    """Block a user: close all connections, and refuse new ones."""

    user: UserID
    until: float
    """Unix seconds."""
    origin: str = ""
    version: ListVersion = NO_LIST
    """Of the list that has this change, or a later one; NO_LIST where there is none."""


class UnblockUser(msgspec.Struct, frozen=True, tag="unblock", tag_field="do"):
    """Let a blocked user connect again."""

    user: UserID
    origin: str = ""
    version: ListVersion = NO_LIST
    """As that of `BlockUser`."""


ControlMessage: TypeAlias = (
    Unsubscribe
    | DisconnectUser
    | EndAuthSession
    | UnsubscribeSome
    | DisconnectSome
    | RefreshSome
    | SubscribeSome
    | BlockUser
    | UnblockUser
)

_decoder: msgspec.json.Decoder[ControlMessage] = msgspec.json.Decoder(ControlMessage)


def _payload(text: str | None) -> Payload | None:
    return None if text is None else payload.check(text.encode())


def _overrides(switches: dict[str, bool] | None) -> Overrides | None:
    if switches is None:
        return None
    return Overrides(**{name: on for name, on in switches.items() if name in Overrides._fields})


def is_ordered(message: ControlMessage) -> bool:
    """Return whether every node, the sender too, applies a message in its place in the stream."""
    return isinstance(message, DisconnectUser) and message.keep != ""


def encode(message: ControlMessage) -> Payload:
    """Return a message as the data of a publication."""
    return payload.check(msgspec.json.encode(message))


def decode(data: Payload) -> ControlMessage:
    """Return the message that `encode` got.

    Raises:
        msgspec.DecodeError: a node of another version sent something unknown.
    """
    return _decoder.decode(data.raw)
