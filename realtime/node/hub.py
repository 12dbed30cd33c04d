"""Hub: the clients of this process, by ID, by user and by channel, and fan-out to them.

Everything here is synchronous and this process only; `node` joins the processes.

A channel with local subscribers has a `Feed`. A subscriber is *held* until its reply is on
the way: publications are kept back for it meanwhile. Then it is *live*. In a recoverable
channel the feed follows the stream, and its position is the one all live subscribers have
been served up to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from realtime.cluster.survey import ClientReport
from realtime.config.options import ChannelOptions
from realtime.errors import Disconnect
from realtime.metrics import Tally
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    UserID,
)
from realtime.streams.follower import Following
from realtime.timers import Timer


class Subscriber(Protocol):
    """What hub and node know of a client."""

    id: ClientID
    codec: Codec

    @property
    def user(self) -> UserID: ...

    @property
    def login(self) -> str:
        """The login session the connection belongs to, "" for none."""
        ...

    async def renew(self) -> None:
        """Ask the site whether the connection may go on."""
        ...

    @property
    def observing(self) -> bool:
        """Whether it is an operator's, who is not to be noticed in the channels it watches."""
        ...

    def report(self, max_channels: int) -> ClientReport:
        """What operators want to know of the connection, with so many of its channels."""
        ...

    def push(self, message: bytes) -> None:
        """Queue an encoded message. Must not block and must not raise."""
        ...

    def info_in(self, channel: ChannelName) -> ClientInfo:
        """Client info as others in the channel see it."""
        ...

    async def unsubscribe(self, channel: ChannelName) -> None:
        """Unsubscribe on the server's behalf and say so to the client; "" means everywhere."""
        ...

    def close(self, disconnect: Disconnect | None) -> None:
        """Begin to close the connection; returns at once."""
        ...

    def is_closing(self) -> bool:
        """Whether closing has begun: nothing reaches the client any more."""
        ...


class Feed:
    """The local subscribers of one channel, and how far they have been served."""

    __slots__ = (
        "_held",
        "_live",
        "channel",
        "checked_at",
        "following",
        "leaving",
        "observers",
        "options",
        "ready",
        "tally",
        "timer",
    )

    def __init__(
        self, channel: ChannelName, options: ChannelOptions, tally: Tally | None = None
    ) -> None:
        """`tally`: counts what is delivered."""
        self.channel = channel
        self.options = options
        self._live: dict[Codec, dict[Subscriber, None]] = {}
        self._held: dict[Subscriber, list[Publication]] = {}
        self.following: Following | None = None
        """In a recoverable channel: its position is that of all live subscribers."""
        self.checked_at = 0.0
        """Monotonic seconds of the last publication or successful position check."""
        self.timer: Timer | None = None
        self.leaving: set[Subscriber] = set()
        """Subscribers who are leaving: still served, not present any more."""
        self.observers = 0
        """How many subscribers only observe."""
        self.tally = tally or Tally()
        self.ready: asyncio.Future[None] | None = None
        """Until the engine hands over what is published here; None from then on."""

    def __bool__(self) -> bool:
        return bool(self._live or self._held)

    @property
    def failed(self) -> bool:
        """Whether the engine was asked for what is published here, in vain."""
        return self.ready is not None and self.ready.done()

    @property
    def size(self) -> int:
        """How many subscribe here, those not counted who only observe."""
        live = sum(len(clients) for clients in self._live.values())
        return live + len(self._held) - self.observers

    def subscribers(self) -> Iterator[Subscriber]:
        """All local subscribers, held ones included."""
        yield from self._held
        for clients in self._live.values():
            yield from clients

    def live(self) -> Iterator[Subscriber]:
        """The subscribers that are served at once."""
        for clients in self._live.values():
            yield from clients

    def hold(self, client: Subscriber) -> None:
        """Add a subscriber for which publications are kept back."""
        self._held[client] = []
        self.observers += client.observing

    def held(self, client: Subscriber) -> list[Publication]:
        """What was kept back for a subscriber so far, in order of arrival."""
        return self._held.get(client, [])

    def release(self, client: Subscriber) -> None:
        """Serve a held subscriber at once from now on."""
        del self._held[client]
        self._live.setdefault(client.codec, {})[client] = None

    def cut_off(self) -> list[Subscriber]:
        """Serve nobody any more; returns all subscribers, who are about to be closed."""
        clients = list(self.subscribers())
        self._live.clear()
        self.observers = sum(client.observing for client in self._held)
        return clients

    def close(self) -> None:
        """Let go of the timer and the stream."""
        if self.timer is not None:
            self.timer.cancel()
        if self.following is not None:
            self.following.stop()

    def remove(self, client: Subscriber) -> None:
        """Remove a subscriber, live or held."""
        found = self._held.pop(client, None) is not None
        self.leaving.discard(client)
        clients = self._live.get(client.codec)
        if clients is not None and client in clients:
            found = True
            del clients[client]
            if not clients:
                del self._live[client.codec]
        if found:
            self.observers -= client.observing

    def publish(self, publication: Publication) -> None:
        """Push a publication to every live subscriber, encoded once per codec.

        For held ones it is kept back.
        """
        for held in self._held.values():
            held.append(publication)
        for codec, clients in self._live.items():
            message = codec.publication(self.channel, publication)
            self.tally.delivered += len(clients)
            for client in clients:
                client.push(message)

    def broadcast(self, encode: Callable[[Codec], bytes]) -> None:
        """Push a join or leave to every live subscriber, encoded once per codec.

        Held ones learn from presence, which they can ask for after their reply.
        """
        for codec, clients in self._live.items():
            message = encode(codec)
            for client in clients:
                client.push(message)


class Hub:
    """The clients and feeds of this process."""

    def __init__(self, tally: Tally | None = None) -> None:
        """`tally`: counts what is delivered."""
        self._tally = tally
        self.clients: dict[ClientID, Subscriber] = {}
        self.users: dict[UserID, dict[Subscriber, None]] = {}
        self.feeds: dict[ChannelName, Feed] = {}

    def add(self, client: Subscriber) -> None:
        """Add a connected client."""
        self.clients[client.id] = client
        self.users.setdefault(client.user, {})[client] = None

    def remove(self, client: Subscriber) -> None:
        """Remove a client; unknown ones are ignored. Its subscriptions are removed one by one."""
        if self.clients.pop(client.id, None) is None:
            return
        connections = self.users.get(client.user)
        if connections is not None:
            connections.pop(client, None)
            if not connections:
                del self.users[client.user]

    def connections(self, user: UserID) -> list[Subscriber]:
        """The clients of a user in this process, but for those that are closing already.

        They are in the hub until all of their subscriptions have ended, which takes as long as
        the engine does, and must neither be counted nor shown meanwhile.
        """
        return [client for client in self.users.get(user, ()) if not client.is_closing()]

    def add_subscription(
        self, channel: ChannelName, client: Subscriber, options: ChannelOptions
    ) -> bool:
        """Add a client to a channel, held; returns whether it is the first one in this process."""
        feed = self.feeds.get(channel)
        first = feed is None
        if feed is None:
            feed = self.feeds[channel] = Feed(channel, options, self._tally)
        feed.hold(client)
        return first

    def remove_subscription(self, channel: ChannelName, client: Subscriber) -> Feed | None:
        """Remove a client from a channel; returns the feed if it was the last one here."""
        feed = self.feeds.get(channel)
        if feed is None:
            return None
        feed.remove(client)
        if feed:
            return None
        del self.feeds[channel]
        return feed
