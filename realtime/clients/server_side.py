"""Subscriptions that the server makes while a client is connected.

    subscribe ──► the channel is busy ──► wanted ──► freed ──┐
        ├──► subscribed already: told again      ◄───────────┤
        └──► held ──► told, and live             ◄───────────┘

Between a client and a channel one thing is under way at a time. While the client is connecting,
subscribing, or leaving, the server's call waits in the session, only the newest one for a channel;
an unsubscribe of the server ends the wait.

docs/protocol.md, 16.8.
"""

from __future__ import annotations

import logging
import time
from typing import Protocol

from realtime import channel_rules, logs
from realtime.clients import subscribing
from realtime.clients.session import Subscription
from realtime.clients.subscribing import Subscribing, grant, overridden
from realtime.cluster.control import ServerSubscription
from realtime.errors import (
    Disconnect,
    DisconnectChannelLimit,
    DisconnectServerError,
    EngineUnavailable,
    Error,
)
from realtime.protocol.messages import StreamPosition, SubscribeResult

logger = logging.getLogger("realtime.client")


class Client(subscribing.Client, Protocol):
    """What is needed of a client."""

    def set_timer(self) -> None: ...

    def expiry_deadline(self, expires_at: float | None) -> float | None: ...

    def log_refused(self, what: str, why: Exception) -> None: ...


def connected(client: Client) -> None:
    """Begin what waited for the reply to connect. Call it when the client has that reply."""
    session = client.session
    session.answered = True
    for channel in list(session.wanted):
        subscribing.freed(client, channel)


async def subscribe(client: Client, wanted: ServerSubscription) -> None:
    """Subscribe a client and tell it; where that fails, close it. Never raises.

    It comes back without the subscription: the site sees that, and can make it again.
    """
    session, channel = client.session, wanted.channel
    if client.is_closing():
        return
    if session.is_busy(channel):
        session.wanted[channel] = wanted
        return
    if wanted.expires_at is not None and wanted.expires_at <= time.time():
        return
    try:
        subscription = session.subscriptions.get(channel)
        if subscription is None:
            await _make(client, wanted)
        else:
            _renew(client, subscription, wanted)
    except Disconnect as disconnect:
        # its traceback holds frames that hold the client
        client.close(disconnect.with_traceback(None))
    except EngineUnavailable as error:
        if client.node.outage.begins():
            about = logs.of(client, channel=channel)
            logger.error("Could not subscribe a client for the server: %s", error, extra=about)
        client.close(DisconnectServerError())
    except Error as error:  # the node that was asked has other namespaces
        client.log_refused("subscription by the server", error)


async def _make(client: Client, wanted: ServerSubscription) -> None:
    session, channel = client.session, wanted.channel
    if session.is_full():
        raise DisconnectChannelLimit
    options = channel_rules.check_channel(channel, client.node.config)
    subscription = Subscription(
        overridden(options, wanted.overrides),
        server_side=True,
        info=wanted.info,
        expiry_deadline=client.expiry_deadline(wanted.expires_at),
    )
    grant(client, subscription, None)
    async with Subscribing(client, channel, subscription, wanted.since) as making:
        making.data = wanted.data
        await making.prepare()
        if client.is_closing():
            return
        result = making.complete()
        client.set_timer()
        _tell(client, wanted, result)
        making.push_kept()
    await making.join()


def _tell(client: Client, wanted: ServerSubscription, result: SubscribeResult) -> None:
    """Push that the client is subscribed, and what it has recovered: the push holds none of it."""
    publications = result.publications if result.recovered else ()
    if publications and result.position is not None:
        begin = StreamPosition(publications[0].offset - 1, result.position.epoch)
        result = SubscribeResult(
            recoverable=result.recoverable,
            positioned=result.positioned,
            position=begin,
            data=result.data,
        )
    client.push(client.codec.subscribed(wanted.channel, result))
    for publication in publications:
        client.push(client.codec.publication(wanted.channel, publication))


def _renew(client: Client, subscription: Subscription, wanted: ServerSubscription) -> None:
    """Give a subscription the info and expiry of the newest call, and tell the client again."""
    subscription.info = wanted.info
    subscription.expiry_deadline = client.expiry_deadline(wanted.expires_at)
    client.set_timer()
    position = None
    if subscription.positioned:
        position = client.node.subscriptions.position(wanted.channel)
    result = SubscribeResult(
        recoverable=subscription.recoverable,
        positioned=subscription.positioned,
        position=position,
        data=wanted.data,
    )
    _tell(client, wanted, result)
