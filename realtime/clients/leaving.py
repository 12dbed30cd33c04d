"""Leaving a channel: how a subscription ends, and what ends it.

    unsubscribe (server) ───► end ──┐
    lose_position, expiry ──► end ──┼──► leave ──► presence, leave push, feed ──► left
    the client's command ───────────┤
    the connection closes ──────────┘

Invariants:
- a subscription ends once; who else ends it waits until it has ended;
- it stays in the session until then, so that the client cannot subscribe meanwhile;
- at this node it ends even if the engine fails.

docs/protocol.md, 3.11, 3.12 and 3.14.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Protocol

from realtime import logs
from realtime.clients import subscribing
from realtime.errors import Disconnect, DisconnectInsufficientState, EngineUnavailable
from realtime.protocol.messages import INSUFFICIENT_STATE, ChannelName, UnsubscribeReason

logger = logging.getLogger("realtime.client")


class Client(subscribing.Client, Protocol):
    """What is needed of a client."""

    ends: dict[ChannelName, asyncio.Event]

    def set_timer(self) -> None: ...

    def close(self, disconnect: Disconnect | None) -> None: ...


async def unsubscribe(client: Client, channel: ChannelName, why: UnsubscribeReason) -> None:
    """Unsubscribe a client on the server's behalf; see `node.subscriber.Subscriber`.

    A client that is connecting has no other subscriptions than those that are being made.
    """
    session = client.session
    session.revoke(channel)
    if not session.answered:
        return
    names = [channel] if channel else list(session.subscriptions)
    made = [name for name in names if name not in session.pending]
    await asyncio.gather(*(end(client, name, why) for name in made))


async def end(client: Client, channel: ChannelName, why: UnsubscribeReason) -> None:
    """End a subscription, if there is one, and tell the client why."""
    await _leave_safely(client, channel)
    if not client.is_closing():
        client.push(client.codec.unsubscribe(channel, *why))


def lose_position(client: Client, channel: ChannelName) -> None:
    """Begin to end a subscription, or the connection, because publications are missing."""
    subscription = client.session.subscriptions.get(channel)
    if subscription is not None and client.session.ends_alone(subscription):
        if not subscription.ending:
            client.node.spawn(end(client, channel, INSUFFICIENT_STATE))
    else:
        client.close(DisconnectInsufficientState())


def leave_all(client: Client) -> list[Awaitable[None]]:
    """Return what ends each subscription of a client, even if the engine fails.

    Await them together: an engine that hangs costs its timeout once, and not for each channel.
    """
    return [_leave_safely(client, channel) for channel in client.session.subscriptions]


async def leave(client: Client, channel: ChannelName) -> None:
    """End a subscription, if there is one. If it is ending already, wait until it has ended.

    Raises:
        EngineUnavailable: the engine failed; the subscription has ended at this node.
    """
    subscription = client.session.subscriptions.get(channel)
    if subscription is None:
        return
    if subscription.ending:
        await wait_until_left(client, channel)
        return
    subscription.ending = True
    client.ends[channel] = asyncio.Event()
    try:
        await client.node.subscriptions.remove(
            channel,
            client,
            subscription.options,
            leave=client.info_with(subscription),
            visible=subscription.visible,
            hears_leave=client.session.rules.own_leave,
        )
    finally:
        # who waits for the end goes on before what `left` begins
        client.ends.pop(channel).set()
        left(client, channel)
    client.set_timer()


async def wait_until_left(client: Client, channel: ChannelName) -> None:
    """Wait until a subscription that is ending has ended; return at once if there is none."""
    if (ended := client.ends.get(channel)) is not None:
        await ended.wait()


async def _leave_safely(client: Client, channel: ChannelName) -> None:
    """End a subscription at this node even if the engine fails."""
    try:
        await leave(client, channel)
    except EngineUnavailable as error:
        if client.node.outage.begins():
            about = logs.of(client, channel=channel)
            logger.error("Could not end a subscription cleanly: %s", error, extra=about)


def left(client: Client, channel: ChannelName) -> None:
    """Forget a subscription, once."""
    if client.session.subscriptions.pop(channel, None) is not None:
        client.node.user_limits.count_channels(client)
        client.emit("unsubscribed", channel=channel)
    subscribing.freed(client, channel)
