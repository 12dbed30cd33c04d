"""Renewals: how long a client may stay, and the site that is asked whether it may go on.

The session knows each deadline; one timer waits for the next. What is due:

    the connection     refreshed by the client: closed; by the site: refresh ──► extend, or close
    a subscription     allowed by a token: ended; by the site: asked again

Asking the site again about a subscription:

    ask_first ──► until ──due──► ask ──► allowed: until
                                  ├────► refused: the subscription ends
    ask_all (the site) ──────────►└────► failed: asked again after ASK_RETRY; the second time the
                                         client comes back, and recovers once the site answers

Invariants:
- the client is told nothing unless its subscription ends;
- only the answer to the last question counts: an earlier one may be out of date;
- where the site cannot answer, a client stays for ASK_RETRY and two times `hook_timeout` at most.

docs/hooks.md, "Asked again".
"""

from __future__ import annotations

import logging
import time

from realtime import logs
from realtime.clients.session import ClientSession, SiteAnswer, Subscription
from realtime.errors import (
    Disconnect,
    DisconnectExpired,
    DisconnectSubscriptionExpired,
    Error,
    InternalError,
    LimitExceeded,
)
from realtime.node.hooks import Permission, Refreshed
from realtime.node.node import Node
from realtime.node.subscriber import Subscriber
from realtime.payload import Payload
from realtime.protocol.messages import SUBSCRIPTION_EXPIRED, UINT32_MAX, ChannelName

logger = logging.getLogger("realtime.client")

REFRESH_RETRY = 60.0
"""Seconds until the site is asked again when it could not answer whether a connection may go on."""
ASK_RETRY = 5.0
"""Seconds until the site is asked again when it could not answer about a subscription."""


class Renewals:
    """The deadlines of one client, and its questions to the site."""

    __slots__ = ("_client", "_node", "_session", "_timer")

    def __init__(self, client: Subscriber, node: Node, session: ClientSession) -> None:
        self._client = client
        self._node = node
        self._session = session
        self._timer = node.timers.timer(self._due)
        self.set_timer()

    def close(self) -> None:
        """Ask no more, and drop the references to the client."""
        self._timer.cancel()
        del self._client

    def set_timer(self) -> None:
        """Set the timer to the session's deadline. Call it after any change of that."""
        self._timer.set(self._session.deadline())

    def deadline(self, expires_at: float | None) -> float | None:
        """Convert Unix seconds to the monotonic seconds of the session; None stays None."""
        return None if expires_at is None else self._node.timers.now() + expires_at - time.time()

    def _due(self) -> None:
        session, now = self._session, self._node.timers.now()
        try:
            session.due(now)
        except Disconnect as disconnect:
            self._client.close(disconnect)
            return
        for channel in session.expired(now):
            self._node.spawn(self._client.unsubscribe(channel, SUBSCRIPTION_EXPIRED))
        for channel, subscription in session.subscriptions.items():
            answer = subscription.site_answer
            if answer is not None and answer.until is not None and now >= answer.until:
                self._begin(channel, subscription, answer)
        if session.is_refresh_due(now):
            session.expiry_deadline = None
            self._node.spawn(self.refresh())
        self.set_timer()

    # the connection

    def extend(self, expiry_deadline: float | None, info: Payload | None) -> None:
        """Let the connection go on. Without info or deadline the old ones stay in force."""
        self._session.refreshed(info, expiry_deadline)
        self.set_timer()

    def refresh_until(self, expires_at: float | None, info: Payload | None) -> None:
        """Set when the connection expires, and tell the client; see `node.subscriber.Subscriber`.

        A client that is connecting learns it from its reply.
        """
        session = self._session
        if session.closing:
            return
        if expires_at is not None and expires_at <= time.time():
            self._client.close(DisconnectExpired())
            return
        session.expiry_deadline = self.deadline(expires_at)
        self.extend(None, info)  # the deadline, also none, is set
        if not session.answered:
            return
        ttl = 0 if expires_at is None else max(1, ttl_of(expires_at))
        message = self._client.codec.refreshed(expires_at is not None, ttl)
        if message is not None:
            self._client.push(message)

    async def refresh(self) -> None:
        """Ask the site whether the connection may go on; close it if not. Never raises."""
        session = self._session
        end: Disconnect | None = None
        answer: Refreshed | None = None
        try:
            answer = await self._node.hooks.refresh(session.caller(), session.auth_session)
        except Disconnect as disconnect:
            end = disconnect.with_traceback(None)  # it holds frames that hold the client
        except InternalError:  # logged where it happened
            self._retry_refresh(exc_info=False)
            return
        except Error:
            pass
        except Exception:  # whatever it is, the connection must not be left without expiry
            self._retry_refresh(exc_info=True)
            return
        if session.closing:
            return
        if answer is not None and answer.expires_at > time.time():
            self.extend(self.deadline(answer.expires_at), answer.info)
        else:
            self._client.close(end or DisconnectExpired())

    def _retry_refresh(self, *, exc_info: bool) -> None:
        logger.warning(
            "Refresh of client %s failed, retrying in %g s",
            self._session.id,
            REFRESH_RETRY,
            exc_info=exc_info,
            extra=logs.of(self._session),
        )
        self.extend(self._node.timers.now() + REFRESH_RETRY, None)

    # subscriptions that the site has allowed

    async def ask_first(self, channel: ChannelName, token: str, subscription: Subscription) -> None:
        """Ask the site whether the client may subscribe. Set the timer when it is subscribed.

        Args:
            channel: the name of the channel.
            token: what the client sent along, unverified.
            subscription: the subscription that is being made.

        Raises:
            Error, Disconnect: the client may not subscribe.
        """
        answer = subscription.site_answer = SiteAnswer()
        permission = await self._node.hooks.subscribe(self._session.caller(), channel, token)
        self._take(subscription, answer, permission)
        if answer.questions:  # the answer may be older than that
            answer.until = self._node.timers.now()

    def ask_all(self, channel: ChannelName) -> None:
        """Begin to ask the site about a subscription at once; "" means about each.

        A subscription that is being made is, and then the site is asked again.
        """
        session = self._session
        for name, pending in session.pending.items():
            answer = pending.subscription.site_answer
            if answer is not None and channel in ("", name):
                answer.questions += 1
                answer.until = self._node.timers.now()
        for name, subscription in session.subscriptions.items():
            answer = subscription.site_answer
            if answer is not None and channel in ("", name):
                self._begin(name, subscription, answer)

    def _take(self, subscription: Subscription, answer: SiteAnswer, permission: Permission) -> None:
        ttl = permission.ttl
        answer.until = None if ttl is None else self._node.timers.now() + ttl
        answer.failed = False
        subscription.info = permission.info

    def _begin(self, channel: ChannelName, subscription: Subscription, answer: SiteAnswer) -> None:
        answer.until = None
        answer.questions += 1
        self._node.spawn(self._ask(channel, subscription, answer))

    async def _ask(
        self, channel: ChannelName, subscription: Subscription, answer: SiteAnswer
    ) -> None:
        """Ask the site whether the client may stay subscribed. Never raises."""
        session, question = self._session, answer.questions
        permission: Permission | None = None
        end: Disconnect | None = None
        failed = False
        try:
            permission = await self._node.hooks.subscribe(session.caller(), channel, "")
        except Disconnect as disconnect:
            end = disconnect.with_traceback(None)  # it holds frames that hold the client
        except (InternalError, LimitExceeded):  # logged where it happened
            failed = True
        except Error:
            pass
        is_last = question == answer.questions
        if session.closing or not (is_last and session.is_subscribed(channel, subscription)):
            return
        if permission is not None:
            self._take(subscription, answer, permission)
            self.set_timer()
        elif end is not None:
            self._client.close(end)
        elif not failed:
            await self._client.unsubscribe(channel)
        elif not answer.failed:
            answer.failed = True
            answer.until = self._node.timers.now() + ASK_RETRY
            self.set_timer()
        elif session.ends_alone(subscription):
            await self._client.unsubscribe(channel, SUBSCRIPTION_EXPIRED)
        else:
            self._client.close(DisconnectSubscriptionExpired())


def ttl_of(expires_at: float | None) -> int:
    """Return the time to a moment as replies carry it.

    Args:
        expires_at: Unix seconds; None for never.

    Returns:
        Whole seconds, 32 bits at most; 0 for never, and for a moment that has passed.
    """
    return 0 if expires_at is None else whole_ttl(expires_at - time.time())


def whole_ttl(seconds: float) -> int:
    """Return a time as replies carry it: whole seconds, 32 bits at most; 0 for a negative one."""
    return max(0, min(int(seconds), UINT32_MAX))
