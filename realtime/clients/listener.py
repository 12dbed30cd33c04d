"""Listener: a client without a library, which names its channels in an address.

It sends one request and gets events. Besides the events it knows two things: the response has
ended, and the ID of the last event. So whatever it cannot go on with ends the response, and
it comes back with the ID, which says from where it wants to continue; see `protocol.event_ids`.
"""

from __future__ import annotations

from realtime.clients.client import Client
from realtime.clients.rules import LISTENING
from realtime.cluster.control import ServerSubscription
from realtime.errors import DisconnectForced
from realtime.node.hooks import Handshake
from realtime.node.node import Node
from realtime.node.outbox import Transport
from realtime.protocol.messages import SERVER_UNSUBSCRIBE, ChannelName, UnsubscribeReason
from realtime.protocol.v2.events import EventCodec, Part, Positions


class Listener(Client):
    """One listener."""

    __slots__ = ("_positions",)

    def __init__(
        self, node: Node, transport: Transport, codec: EventCodec, handshake: Handshake
    ) -> None:
        super().__init__(node, transport, codec, handshake)
        self.session.rules = LISTENING
        self._positions: Positions | None = None

    def follow(self, positions: Positions) -> None:
        """Add the ID to each event from now on: the codec leaves it out."""
        self._positions = positions
        self.push = self._push_part

    def _push_part(self, message: bytes) -> None:
        if isinstance(message, Part):
            assert self._positions is not None
            moved = self._positions.move(message.channel, message.offset)
            self.outbox.append(message)
            self.outbox.append(self._positions.id_line() + b"\n" if moved else b"\n")
        else:
            self.outbox.append(message)

    async def subscribe(self, wanted: ServerSubscription) -> None:
        """Do nothing: a listener has the channels that it asked for."""

    async def unsubscribe(
        self, channel: ChannelName, why: UnsubscribeReason = SERVER_UNSUBSCRIBE
    ) -> None:
        """End a subscription and tell the listener; "" means each. After the last one it stays
        away."""
        session = self.session
        if channel and channel not in session.subscriptions and channel not in session.pending:
            return
        await super().unsubscribe(channel, why)
        self.close_if_done()

    def close_if_done(self) -> None:
        """Close the connection if no subscription is left, nor being made."""
        if not (self.session.subscriptions or self.session.pending):
            self.close(DisconnectForced())
