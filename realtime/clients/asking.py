"""Asking the site again whether a client may stay subscribed.

    ask_first ──► until ──due──► ask ──► allowed: until
                                  ├────► refused: the subscription ends
    ask_all (the site) ──────────►└────► failed: asked again after RETRY; the second time the client
                                         has to come back, and recovers once the site answers

Invariants:
- the client is told nothing unless its subscription ends;
- only the answer to the last question counts: an earlier one may be out of date;
- where the site cannot answer, a client stays for RETRY and two times `hook_timeout` at most.

docs/hooks.md, "Asked again".
"""

from __future__ import annotations

from typing import Protocol

from realtime.clients import leaving
from realtime.clients.session import SiteAnswer, Subscription
from realtime.errors import (
    Disconnect,
    DisconnectSubscriptionExpired,
    Error,
    InternalError,
    LimitExceeded,
)
from realtime.node.hooks import Caller, Permission
from realtime.protocol.messages import (
    SERVER_UNSUBSCRIBE,
    SUBSCRIPTION_EXPIRED,
    ChannelName,
    UnsubscribeReason,
)

RETRY = 5.0
"""Seconds until a site that could not answer is asked again."""


class Client(leaving.Client, Protocol):
    """What is needed of a client."""

    def caller(self) -> Caller: ...

    async def unsubscribe(
        self, channel: ChannelName, why: UnsubscribeReason = SERVER_UNSUBSCRIBE
    ) -> None: ...


async def ask_first(
    client: Client, channel: ChannelName, token: str, subscription: Subscription
) -> None:
    """Ask the site whether a client may subscribe. Set its timer when it is subscribed.

    Args:
        client: who subscribes.
        channel: the name of the channel.
        token: what the client sent along, unverified.
        subscription: the subscription that is being made.

    Raises:
        Error, Disconnect: the client may not subscribe.
    """
    answer = subscription.site_answer = SiteAnswer(None)
    _take(client, subscription, await client.node.hooks.subscribe(client.caller(), channel, token))
    if answer.questions:  # the answer may be older than that
        answer.until = client.node.timers.now()


def _take(client: Client, subscription: Subscription, permission: Permission) -> None:
    answer = subscription.site_answer
    assert answer is not None
    ttl = permission.ttl
    answer.until = None if ttl is None else client.node.timers.now() + ttl
    answer.failed = False
    subscription.info = permission.info


def ask_due(client: Client, now: float) -> None:
    """Begin to ask the site about each subscription that it allowed until now."""
    for channel, subscription in client.session.subscriptions.items():
        answer = subscription.site_answer
        if answer is not None and answer.until is not None and now >= answer.until:
            _begin(client, channel, subscription, answer)


def ask_all(client: Client, channel: ChannelName) -> None:
    """Begin to ask the site about a subscription at once; "" means about each.

    A subscription that is being made is, and then the site is asked again.
    """
    session = client.session
    for name, pending in session.pending.items():
        answer = pending.subscription.site_answer
        if answer is not None and channel in ("", name):
            answer.questions += 1
            answer.until = client.node.timers.now()
    for name, subscription in session.subscriptions.items():
        answer = subscription.site_answer
        if answer is not None and channel in ("", name):
            _begin(client, name, subscription, answer)


def _begin(
    client: Client, channel: ChannelName, subscription: Subscription, answer: SiteAnswer
) -> None:
    answer.until = None
    answer.questions += 1
    client.node.spawn(_ask(client, channel, subscription, answer))


async def _ask(
    client: Client, channel: ChannelName, subscription: Subscription, answer: SiteAnswer
) -> None:
    """Ask the site whether a client may stay subscribed. Never raises."""
    question = answer.questions
    permission: Permission | None = None
    end: Disconnect | None = None
    failed = False
    try:
        permission = await client.node.hooks.subscribe(client.caller(), channel, "")
    except Disconnect as disconnect:
        end = disconnect.with_traceback(None)  # it holds frames that hold the client
    except (InternalError, LimitExceeded):  # logged where it happened
        failed = True
    except Error:
        pass
    if question != answer.questions or not client.session.is_subscribed(channel, subscription):
        return
    if permission is not None:
        _take(client, subscription, permission)
        client.set_timer()
    elif end is not None:
        client.close(end)
    elif not failed:
        await client.unsubscribe(channel, SERVER_UNSUBSCRIBE)
    elif not answer.failed:
        answer.failed = True
        answer.until = client.node.timers.now() + RETRY
        client.set_timer()
    elif client.session.ends_alone(subscription):
        await client.unsubscribe(channel, SUBSCRIPTION_EXPIRED)
    else:
        client.close(DisconnectSubscriptionExpired())
