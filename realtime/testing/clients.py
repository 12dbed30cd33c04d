"""TestClient: one connection of a user, with the methods of a client library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import ANY

from realtime.errors import Disconnect
from realtime.protocol.messages import Method, StreamPosition
from realtime.protocol.v1.numbers import PushType
from realtime.server_api.queries import ClientInfo, PresenceStats
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
"""Seconds to wait for a push that a test expects."""

Token = str | Callable[[str, str], str]
"""A subscription token, or a function of client ID and channel that makes one."""


class _Subscription:
    """A subscription of the client, and what it needs to subscribe again."""

    def __init__(self, token: Token, position: StreamPosition | None, server_side: bool) -> None:
        self.token = token
        self.position = position
        self.server_side = server_side


class TestClient:
    """A client of a `TestService`, made by its method `client`. Speaks the protocol in memory.

        with service.client(user) as alice:               async with service.client(user) as alice:
            alice.subscribe("chat:lobby")                     await alice.asubscribe("chat:lobby")
            alice.expect("chat:lobby", {"text": "hi"})        await alice.aexpect(...)

    Each method has an async version whose name begins with "a". All of them raise:
        Error: the service refuses: an instance of the class that belongs to the code, such as
            `PermissionDenied`.
        Disconnect: the service closed the connection: also of the class of its code.
        AssertionError: an expected push did not come.
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
        """Client ID, a new one after every connect."""
        self.data: Any = None
        """Data of the connect hook for the client."""
        self._credentials = credentials
        self._data = data
        self._socket: Socket | None = None
        self._subscriptions: dict[str, _Subscription] = {}
        self._inbox: list[tuple[PushType, Received]] = []
        """Pushes that the test has not expected yet."""

    # connection

    async def _connect(self) -> TestClient:
        """Connect, and return the client.

        Raises:
            HandshakeRefused: the service did not accept the WebSocket.
            Error, Disconnect: the service refused the connect command.
        """
        await self._open({})
        return self

    async def _close(self) -> None:
        """Close the connection, and wait until the service has ended it."""
        if self._socket is not None:
            await self._socket.close()
            await self._gone()
        self._subscriptions.clear()

    async def _drop(self) -> None:
        """Lose the connection, as a network failure does. See `resume`."""
        if self._socket is not None:
            await self._socket.close(lost=True)
            await self._gone()

    async def _resume(self) -> Resumed:
        """Reconnect, subscribe to the same channels, and recover, as client libraries do.

        The result has the publications that were missed; `expect` waits for later ones.
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
        """Wait until the service has closed the connection, and return the disconnect.

        Args:
            code: the one to expect, such as 3012 after `disconnect`; None: any.
            timeout: seconds.
        """
        socket = self._open_socket()
        closed = await socket.wait(lambda: socket.closed, timeout)
        if closed is None:
            raise AssertionError(f"The service did not close the connection in {timeout:g} s.")
        await socket.ended()
        await self._gone()
        if code is not None and closed.code != code:
            raise AssertionError(f"Closed with {closed}, not with {code}.")
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
            channel: the name of the channel.
            token: for a private channel; a function such as `realtime.tokens.subscription_token`
                is called with client ID and channel, also at every `resume`.
            since: the position of an earlier result, to recover from.
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
        """Publish as a client, if the options allow it."""
        await self._open_socket().call(Method.PUBLISH, {"channel": channel, "data": data})

    async def _rpc(self, method: str, data: object = None) -> Any:
        """Call a method of the site, and return its data, if it has any."""
        params = {"method": method, "data": data}
        return (await self._open_socket().call(Method.RPC, params)).get("data")

    async def _send(self, data: object) -> None:
        """Send a message to the site, and wait until its hook was called."""
        socket = self._open_socket()
        socket.send(data)
        await socket.call(Method.PING, {})

    async def _presence(self, channel: str) -> dict[str, ClientInfo]:
        """Return the clients that are subscribed: client ID → client info."""
        result = await self._open_socket().call(Method.PRESENCE, {"channel": channel})
        present: dict[str, ClientInfo] = result["presence"]
        return present

    async def _presence_stats(self, channel: str) -> PresenceStats:
        """Return the numbers of clients and users that are subscribed."""
        result = await self._open_socket().call(Method.PRESENCE_STATS, {"channel": channel})
        return PresenceStats(num_clients=result["num_clients"], num_users=result["num_users"])

    async def _history(self, channel: str) -> list[Received]:
        """Return the history of a channel, oldest publication first."""
        result = await self._open_socket().call(Method.HISTORY, {"channel": channel})
        return [read_publication(channel, shape) for shape in result["publications"]]

    async def _refresh(self, token: str) -> None:
        """Send a new connection token, before the old one expires."""
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
        """Wait for the next publication in a channel, which must have these data, and return it.

        Publications in other channels stay there for later calls.
        """
        publication = await self._next(PushType.PUBLICATION, channel, timeout)
        if publication.data != data:
            raise AssertionError(
                f"The next publication in {channel!r} is {publication.data!r}, not {data!r}."
            )
        return publication

    async def _expect_join(self, channel: str, *, timeout: float = EXPECT_TIMEOUT) -> ClientInfo:
        """Wait for the next join in a channel, and return the client info."""
        return _info(await self._next(PushType.JOIN, channel, timeout))

    async def _expect_leave(self, channel: str, *, timeout: float = EXPECT_TIMEOUT) -> ClientInfo:
        """Wait for the next leave in a channel, and return the client info."""
        return _info(await self._next(PushType.LEAVE, channel, timeout))

    async def _expect_unsubscribed(self, channel: str, *, timeout: float = EXPECT_TIMEOUT) -> None:
        """Wait until the service has unsubscribed the client from a channel."""
        await self._next(PushType.UNSUB, channel, timeout)

    async def _expect_nothing(self, channel: str | None = None) -> None:
        """Fail if there is a push that the test has not expected, in a channel or in any.

        Publications made before this call have arrived; other threads of the code under test may
        still publish later.
        """
        await self._open_socket().call(Method.PING, {})
        came = [push for push in self._inbox if channel in (None, push[1].channel)]
        if came:
            raise AssertionError(f"Expected nothing, but there is {_listed(came)}.")

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
            f"No {kind.name.lower()} in {channel!r} {why}. There is {_listed(self._inbox)}."
        )

    # underneath

    async def _gone(self) -> None:
        """Wait until the service has ended all subscriptions of the client."""
        clients = self.service.node.hub.clients
        async with asyncio.timeout(REPLY_TIMEOUT):
            while self.id in clients:
                await asyncio.sleep(0)

    def _open_socket(self) -> Socket:
        if self._socket is None:
            raise ConnectionError("the client is not connected: connect() first")
        return self._socket

    async def _open(self, subs: Mapping[str, Mapping[str, Any]]) -> dict[str, Subscribed]:
        """Connect, and return the server-side subscriptions."""
        if self._socket is not None and not self._socket.over:
            raise ConnectionError("the client is already connected")
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


def _listed(inbox: list[tuple[PushType, Received]]) -> str:
    """List pushes, for the message of a failed expectation."""
    words = [
        f"{received.data!r} in {received.channel!r}"
        if kind is PushType.PUBLICATION
        else f"a {kind.name.lower()} in {received.channel!r}"
        for kind, received in inbox
    ]
    return ", ".join(words) or "nothing"
