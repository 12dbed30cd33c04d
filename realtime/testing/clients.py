"""TestClient: one user's connection, as the code of a front end would have it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import ANY

from realtime.errors import Disconnect
from realtime.protocol.messages import Method, StreamPosition
from realtime.protocol.v1.numbers import PushType
from realtime.server_api.functions import ClientInfo, PresenceStats
from realtime.testing.credentials import Credentials
from realtime.testing.outbox import Published
from realtime.testing.results import (
    Received,
    Resumed,
    Subscribed,
    read_publication,
    read_subscribed,
)
from realtime.testing.sockets import REPLY_TIMEOUT, Socket
from realtime.testing.sync_async import Service, sync_and_async

EXPECT_TIMEOUT = 2.0
"""Seconds until what is expected must have come."""

Token = str | Callable[[str, str], str]
"""A subscription token, or what makes one of connection ID and channel."""


class _Subscription:
    """A channel the client is in, and what it needs to come back to it."""

    def __init__(self, token: Token, position: StreamPosition | None, server_side: bool) -> None:
        self.token = token
        self.position = position
        self.server_side = server_side


class TestClient:
    """A client of a `TestService`, which makes it. Speaks the protocol, without a network.

        with service.client(user) as alice:               async with service.client(user) as alice:
            alice.subscribe("chat:lobby")                     await alice.asubscribe("chat:lobby")
            alice.expect("chat:lobby", {"text": "hi"})        await alice.aexpect(...)

    Each method has a twin for coroutines whose name begins with "a". All raise:
        Error: the service refuses; the class tells the code, `PermissionDenied` for one.
        Disconnect: the service closed the connection, in the same way.
        AssertionError: what is expected does not come.
    """

    __test__ = False  # for pytest

    def __init__(
        self,
        service: Service,
        credentials: Credentials,
        data: object,
    ) -> None:
        self.service = service
        self.id = ""
        """Connection ID, a new one after every connect."""
        self.data: Any = None
        """What the connect hook had for the client."""
        self._credentials = credentials
        self._data = data
        self._socket: Socket | None = None
        self._subscriptions: dict[str, _Subscription] = {}
        self._inbox: list[tuple[PushType, Received]] = []
        """What came and was not expected yet."""

    # connection

    async def _connect(self) -> TestClient:
        """Connect, and return the client.

        Raises:
            HandshakeRefused: the WebSocket is not accepted.
            Error, Disconnect: the service does not let it in.
        """
        await self._open({})
        return self

    async def _close(self) -> None:
        """Leave, as a page that is closed. The service knows when this returns."""
        if self._socket is not None:
            await self._socket.close()
            await self._gone()
        self._subscriptions.clear()

    async def _drop(self) -> None:
        """Lose the connection, as by a network that is gone. See `resume`."""
        if self._socket is not None:
            await self._socket.close(lost=True)
            await self._gone()

    async def _resume(self) -> Resumed:
        """Connect anew, subscribe to the same channels, and recover, as client libraries do.

        What was missed is in the result; `expect` is for what comes afterwards.
        """
        if self._socket is not None and not self._socket.over:
            await self._drop()
        before = dict(self._subscriptions)
        subs = {
            channel: _since(subscription.position)
            for channel, subscription in before.items()
            if subscription.server_side
        }
        subscriptions = await self._open(subs)
        for channel, subscription in before.items():
            if not subscription.server_side:
                subscriptions[channel] = await self._subscribe(
                    channel, token=subscription.token, since=subscription.position
                )
        return Resumed(
            recovered=all(each.recovered for each in subscriptions.values()),
            missed=[
                Published(publication.channel, publication.data)
                for each in subscriptions.values()
                for publication in each.publications
            ],
            subscriptions=subscriptions,
        )

    async def _closed(
        self, code: int | None = None, *, timeout: float = EXPECT_TIMEOUT
    ) -> Disconnect:
        """Wait until the service has closed the connection; returns how, as an exception.

        `code` is that of the close frame: 3012 after `disconnect`, for example.
        """
        socket = self._open_socket()
        closed = await socket.wait(lambda: socket.closed, timeout)
        if closed is None:
            raise AssertionError(f"The service did not close the connection in {timeout:g} s.")
        await socket.ended()
        await self._gone()
        if code is not None and closed.code != code:
            raise AssertionError(f"Closed with {closed}, and not with {code}.")
        return closed

    connect, aconnect = sync_and_async(_connect)
    close, aclose = sync_and_async(_close)
    drop, adrop = sync_and_async(_drop)
    resume, aresume = sync_and_async(_resume)
    closed, aclosed = sync_and_async(_closed)

    def __enter__(self) -> TestClient:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> TestClient:
        return await self.aconnect()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # commands

    async def _subscribe(
        self, channel: str, *, token: Token = "", since: StreamPosition | None = None
    ) -> Subscribed:
        """Subscribe to a channel.

        Args:
            token: for a private channel; a function is called with connection ID and channel,
                at every `resume` too: `realtime.tokens.subscription_token` is one.
            since: the position to recover from, as in an earlier result.
        """
        made = token if isinstance(token, str) else await self._call(token, self.id, channel)
        params = {"channel": channel, "token": made, **_since(since)}
        shape = await self._open_socket().call(Method.SUBSCRIBE, params)
        return self._subscribed(channel, shape, token, server_side=False)

    async def _unsubscribe(self, channel: str) -> None:
        """Unsubscribe from a channel."""
        await self._open_socket().call(Method.UNSUBSCRIBE, {"channel": channel})
        self._subscriptions.pop(channel, None)

    async def _publish(self, channel: str, data: object) -> None:
        """Publish as a client, where the options allow it."""
        await self._open_socket().call(Method.PUBLISH, {"channel": channel, "data": data})

    async def _rpc(self, method: str, data: object = None) -> Any:
        """Call a method of the site; returns its data, None for nothing."""
        params = {"method": method, "data": data}
        return (await self._open_socket().call(Method.RPC, params)).get("data")

    async def _send(self, data: object) -> None:
        """Send a message to the site, which gets no answer; it is handled when this returns."""
        socket = self._open_socket()
        socket.send(data)
        await socket.call(Method.PING, {})

    async def _presence(self, channel: str) -> dict[str, ClientInfo]:
        """Who is subscribed: connection ID → client info."""
        result = await self._open_socket().call(Method.PRESENCE, {"channel": channel})
        present: dict[str, ClientInfo] = result["presence"]
        return present

    async def _presence_stats(self, channel: str) -> PresenceStats:
        """How many clients and users are subscribed."""
        result = await self._open_socket().call(Method.PRESENCE_STATS, {"channel": channel})
        return PresenceStats(num_clients=result["num_clients"], num_users=result["num_users"])

    async def _history(self, channel: str) -> list[Received]:
        """What is kept in a channel, oldest first."""
        result = await self._open_socket().call(Method.HISTORY, {"channel": channel})
        return [read_publication(channel, shape) for shape in result["publications"]]

    async def _refresh(self, token: str) -> None:
        """Bring a new connection token, before the old one expires."""
        await self._open_socket().call(Method.REFRESH, {"token": token})

    subscribe, asubscribe = sync_and_async(_subscribe)
    unsubscribe, aunsubscribe = sync_and_async(_unsubscribe)
    publish, apublish = sync_and_async(_publish)
    rpc, arpc = sync_and_async(_rpc)
    send, asend = sync_and_async(_send)
    presence, apresence = sync_and_async(_presence)
    presence_stats, apresence_stats = sync_and_async(_presence_stats)
    history, ahistory = sync_and_async(_history)
    refresh, arefresh = sync_and_async(_refresh)

    # what comes

    async def _expect(
        self, channel: str, data: object = ANY, *, timeout: float = EXPECT_TIMEOUT
    ) -> Received:
        """Wait for the next publication in a channel, which must have these data.

        Publications in other channels wait until they are expected themselves.
        """
        publication = await self._next(PushType.PUBLICATION, channel, timeout)
        if publication.data != data:
            raise AssertionError(
                f"The next publication in {channel!r} is {publication.data!r}, and not {data!r}."
            )
        return publication

    async def _expect_join(self, channel: str, *, timeout: float = EXPECT_TIMEOUT) -> ClientInfo:
        """Wait until the channel says that a client subscribed; returns who."""
        return _info(await self._next(PushType.JOIN, channel, timeout))

    async def _expect_leave(self, channel: str, *, timeout: float = EXPECT_TIMEOUT) -> ClientInfo:
        """Wait until the channel says that a client left; returns who."""
        return _info(await self._next(PushType.LEAVE, channel, timeout))

    async def _expect_unsubscribed(self, channel: str, *, timeout: float = EXPECT_TIMEOUT) -> None:
        """Wait until the service unsubscribes the client from a channel."""
        await self._next(PushType.UNSUB, channel, timeout)

    async def _expect_nothing(self, channel: str | None = None) -> None:
        """Nothing has come that was not expected, in a channel or in any.

        What was published before this call has arrived; what the code under test leaves to
        other threads may still be published later.
        """
        await self._open_socket().call(Method.PING, {})
        came = [push for push in self._inbox if channel in (None, push[1].channel)]
        if came:
            raise AssertionError(f"Nothing was expected, and there is {_told(came)}.")

    expect, aexpect = sync_and_async(_expect)
    expect_join, aexpect_join = sync_and_async(_expect_join)
    expect_leave, aexpect_leave = sync_and_async(_expect_leave)
    expect_unsubscribed, aexpect_unsubscribed = sync_and_async(_expect_unsubscribed)
    expect_nothing, aexpect_nothing = sync_and_async(_expect_nothing)

    async def _next(self, kind: PushType, channel: str, timeout: float) -> Received:
        socket = self._socket

        def found() -> Received | Socket | None:
            for number, (its_kind, received) in enumerate(self._inbox):
                if its_kind is kind and received.channel == channel:
                    del self._inbox[number]
                    return received
            return socket if socket is None or socket.over else None

        came = found() if socket is None else await socket.wait(found, timeout)
        if isinstance(came, Received):
            return came
        why = f"came in {timeout:g} s"
        if socket is None or socket.over:
            why = "can come: the client is not connected"
            if socket is not None and socket.closed is not None:
                why = f"can come: the service closed the connection with {socket.closed}"
        raise AssertionError(
            f"No {kind.name.lower()} in {channel!r} {why}. There is {_told(self._inbox)}."
        )

    # underneath

    async def _gone(self) -> None:
        """Wait until the service has ended everything the connection was part of."""
        clients = self.service.node.hub.clients
        async with asyncio.timeout(REPLY_TIMEOUT):
            while self.id in clients:
                await asyncio.sleep(0)

    def _open_socket(self) -> Socket:
        if self._socket is None:
            raise ConnectionError("the client is not connected: connect() first")
        return self._socket

    async def _open(self, subs: Mapping[str, Mapping[str, Any]]) -> dict[str, Subscribed]:
        """Connect; returns the server-side subscriptions."""
        if self._socket is not None and not self._socket.over:
            raise ConnectionError("the client is connected already")
        self._subscriptions.clear()
        self._socket = Socket(self._credentials.headers(), self._arrived)
        token = await self._call(self._credentials.token, self.service.node.config)
        params: dict[str, Any] = {"token": token, "subs": subs}
        if self._data is not None:
            params["data"] = self._data
        await self._socket.open()
        try:
            result = await self._socket.call(Method.CONNECT, params)
        except BaseException:
            if not self._socket.over:
                await self._socket.close()
            raise
        self.id = result["client"]
        self.data = result.get("data")
        return {
            channel: self._subscribed(channel, shape, "", server_side=True)
            for channel, shape in result.get("subs", {}).items()
        }

    async def _call(self, function: Callable[..., str], *arguments: Any) -> str:
        return await self.service.in_thread(lambda: function(*arguments))

    def _subscribed(
        self, channel: str, shape: Mapping[str, Any], token: Token, *, server_side: bool
    ) -> Subscribed:
        subscribed = read_subscribed(channel, shape)
        self._subscriptions[channel] = _Subscription(token, subscribed.position, server_side)
        return subscribed

    def _arrived(self, push: Mapping[str, Any]) -> None:
        kind, channel, shape = PushType(push.get("type", 0)), push["channel"], push["data"]
        received = read_publication(channel, shape)
        self._inbox.append((kind, received))
        subscription = self._subscriptions.get(channel)
        if kind is PushType.UNSUB:
            self._subscriptions.pop(channel, None)
        elif kind is PushType.PUBLICATION and subscription is not None and subscription.position:
            epoch = subscription.position.epoch
            subscription.position = StreamPosition(received.offset, epoch)


def _since(position: StreamPosition | None) -> dict[str, Any]:
    if position is None:
        return {}
    return {"recover": True, "offset": position.offset, "epoch": position.epoch}


def _info(received: Received) -> ClientInfo:
    assert received.info is not None
    return received.info


def _told(inbox: list[tuple[PushType, Received]]) -> str:
    """What came, for the message of a failed expectation."""
    words = [
        f"{received.data!r} in {received.channel!r}"
        if kind is PushType.PUBLICATION
        else f"a {kind.name.lower()} in {received.channel!r}"
        for kind, received in inbox
    ]
    return ", ".join(words) or "nothing"
