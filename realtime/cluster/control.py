"""What one node tells the others to do, as it travels.

Spec: Server HTTP API (unsubscribe, disconnect).
"""

from __future__ import annotations

import msgspec

from realtime import payload
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, UserID


class Unsubscribe(msgspec.Struct, frozen=True, tag="unsubscribe", tag_field="do"):
    """Unsubscribe a user's connections from a channel; "" means from all their channels."""

    user: UserID
    channel: ChannelName
    origin: str = ""
    """The node that has done its part already."""


class DisconnectUser(msgspec.Struct, frozen=True, tag="disconnect", tag_field="do"):
    """Close a user's connections."""

    user: UserID
    code: int
    """Of the disconnect; see `errors.DISCONNECTS`."""
    keep: ClientID = ""
    """The connection that stays."""
    origin: str = ""


class EndLogins(msgspec.Struct, frozen=True, tag="end_logins", tag_field="do"):
    """Close a user's connections that belong to a login; "" looks again at all their logins."""

    user: UserID
    login: str
    code: int = 3012
    """Of the disconnect; see `errors.DISCONNECTS`."""
    origin: str = ""


Control = Unsubscribe | DisconnectUser | EndLogins

_decoder: msgspec.json.Decoder[Control] = msgspec.json.Decoder(Control)


def encode(control: Control) -> Payload:
    """As the data of a publication."""
    return payload.check(msgspec.json.encode(control))


def decode(data: Payload) -> Control:
    """Raises msgspec.DecodeError: another version of this service speaks."""
    return _decoder.decode(data.raw)
