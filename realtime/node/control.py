"""Control messages, as a node applies them to the connections of its users.

Every node gets every control message from one stream, in one order. The node that sends a message
has applied it before, so that it takes effect there even if the engine is away; it skips the
message when the stream brings it back. Ordered messages are the exception: every node applies them
in their place in the stream only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from realtime import payload
from realtime.cluster.context import Context
from realtime.cluster.control import (
    BlockUser,
    ControlMessage,
    DisconnectSome,
    DisconnectUser,
    EndAuthSession,
    RefreshSome,
    Selection,
    SubscribeSome,
    UnblockUser,
    Unsubscribe,
    UnsubscribeSome,
    is_ordered,
)
from realtime.errors import DISCONNECTS, Disconnect, DisconnectForced
from realtime.node.hooks import Hooks
from realtime.node.hub import Hub
from realtime.node.identifying import Identifying
from realtime.node.limits.blocks import Blocks
from realtime.node.limits.single_connection import SingleConnection
from realtime.node.subscriber import Subscriber
from realtime.protocol.messages import ChannelName

_DISCONNECTS = {disconnect.code: disconnect for disconnect in DISCONNECTS}


def disconnect_of(message: DisconnectUser | EndAuthSession) -> type[Disconnect]:
    """Return the disconnect that clients get."""
    return _DISCONNECTS.get(message.code, DisconnectForced)


async def _unsubscribe(clients: Iterable[Subscriber], channel: ChannelName) -> None:
    await asyncio.gather(*(client.unsubscribe(channel) for client in clients))


def _told(message: DisconnectSome) -> Disconnect:
    """Return the disconnect that clients get: the service's own if the message is about that one,
    because each generation has its own code for it."""
    own = _DISCONNECTS.get(message.code)
    if own is not None and (own.reason, own.reconnect) == (message.reason, message.reconnect):
        return own()
    return Disconnect.received(message.code, message.reason, message.reconnect)


@dataclass(eq=False, repr=False)
class ControlHandler:
    """See the module. Belongs to the event loop of its node."""

    _context: Context
    _hub: Hub
    _hooks: Hooks
    _single_connection: SingleConnection
    _identifying: Identifying
    _blocks: Blocks

    def on_message(self, message: ControlMessage) -> None:
        """Apply a message of the stream. Returns at once, so that the next one comes after it."""
        if message.origin == self._context.uid and not is_ordered(message):
            return  # it was applied when it was sent
        if (rest := self._begin(message)) is not None:
            self._context.spawn(rest)

    async def apply(self, message: ControlMessage) -> None:
        """Apply a message, and wait for its effect."""
        if (rest := self._begin(message)) is not None:
            await rest

    def _begin(self, message: ControlMessage) -> Coroutine[Any, Any, None] | None:
        """Apply a message, and return what takes time of it."""
        match message:
            case SubscribeSome():
                return self._subscribe(message)
            case Unsubscribe(ask=True):
                for client in self._hub.connections(message.user):
                    client.ask_site(message.channel)
            case Unsubscribe():
                self._identifying.add(message)
                return _unsubscribe(self._hub.connections(message.user), message.channel)
            case UnsubscribeSome():
                return _unsubscribe(self._selected(message), message.channel)
            case BlockUser(user=user, until=until, version=version):
                self._blocks.add(user, until, version)
            case UnblockUser(user=user, version=version):
                self._blocks.remove(user, version)
            case DisconnectUser(user=user, keep=""):
                self._identifying.add(message)
                for client in self._hub.connections(user):
                    client.close(disconnect_of(message)())
            case DisconnectUser():
                self._single_connection.apply(message, disconnect_of(message))
            case EndAuthSession():
                self._end_auth_session(message, disconnect_of(message))
            case DisconnectSome():
                self._disconnect(message)
            case RefreshSome():
                self._refresh(message)
        return None

    async def _subscribe(self, message: SubscribeSome) -> None:
        wanted = message.subscription()
        await asyncio.gather(*(client.subscribe(wanted) for client in self._selected(message)))

    def _selected(self, message: Selection) -> list[Subscriber]:
        """Return the connections that a message is about."""
        return [
            client
            for client in self._hub.connections(message.user)
            if message.client in ("", client.id)
            and message.session in ("", client.transport.session)
        ]

    def _disconnect(self, message: DisconnectSome) -> None:
        if not (message.client or message.session):
            # a client that is not identified yet is none of those that stay
            self._identifying.add(DisconnectUser(message.user, message.code))
        for client in self._selected(message):
            if client.id not in message.keep:
                client.close(_told(message))

    def _refresh(self, message: RefreshSome) -> None:
        info = None if message.info is None else payload.check(message.info.encode())
        for client in self._selected(message):
            client.refresh_until(message.expires_at, info)

    def _end_auth_session(self, message: EndAuthSession, disconnect: type[Disconnect]) -> None:
        self._hooks.auth_session_ended(message.user, message.auth_session)
        for client in self._hub.connections(message.user):
            if not message.auth_session and client.auth_session:
                self._context.spawn(client.refresh())
            elif message.auth_session and client.auth_session == message.auth_session:
                client.close(disconnect())
