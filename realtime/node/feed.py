"""Feed: the local subscribers of one channel, and delivery to them.

Everything here is synchronous and of this process only, but for `wait`.

The feed gets its publications from the engine:

             ┌──────── failed, abandoned ────────┐
             ▼                                   │
            IDLE ───────────── open ──────────► OPENING ── opened ──► OPEN
                                                                close: any ──► CLOSED

    open        a caller begins to subscribe this process in the engine
    opened      the engine delivers: all callers that wait go on
    failed      the engine refused: all callers that wait fail with it, the next one tries again
    abandoned   the caller was cancelled: one of those that wait tries instead
    close       the last subscriber has left, or the node ends

Each subscriber:

    hold ──► HELD ── release ──► LIVE        leave: it is hidden      remove: it is gone

A held subscriber waits for its reply, and its publications with it. A live one gets each at once.

Invariants:

- A subscriber is held or live, never both.
- In a recoverable channel every live subscriber has received all publications up to the
  follower's position, and none after it. A held one has in `held` those delivered since `hold`.
- A hidden subscriber gets publications, joins and leaves, but is neither counted nor present:
  it is an observer, or it is leaving.
- An open feed of a recoverable channel has a follower, and only its follower calls `publish`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Protocol

from realtime.cluster.survey import ClientReport
from realtime.config.options import ChannelOptions
from realtime.errors import Disconnect, EngineUnavailable
from realtime.metrics import Counters
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
    UserID,
)
from realtime.streams.follower import StreamFollower
from realtime.timers import Timer


class Subscriber(Protocol):
    """A client, as the node sees it."""

    id: ClientID
    codec: Codec

    @property
    def user(self) -> UserID: ...

    @property
    def auth_session(self) -> str:
        """The auth session the connection belongs to, "" for none."""
        ...

    @property
    def session_name(self) -> str:
        """The session of the connection, a secret between it and the client; "" for none."""
        ...

    def refresh_until(self, expires_at: float | None, info: Payload | None) -> None:
        """Set when the connection expires, and tell the client.

        Args:
            expires_at: Unix seconds; a past time closes the connection, None ends its expiry.
            info: the connection info; None: it stays as it is.
        """
        ...

    async def refresh(self) -> None:
        """Ask the site whether the connection may go on."""
        ...

    def report(self, max_channels: int) -> ClientReport:
        """Describe the connection for operators, with `max_channels` of its channels at most."""
        ...

    def push(self, message: bytes) -> None:
        """Queue an encoded message. Must not block and must not raise."""
        ...

    def info_in(self, channel: ChannelName) -> ClientInfo:
        """Return the client info that others in the channel see."""
        ...

    async def unsubscribe(self, channel: ChannelName) -> None:
        """Unsubscribe the client and push it; "" means from all its channels."""
        ...

    def close(self, disconnect: Disconnect | None) -> None:
        """Begin to close the connection; returns at once."""
        ...

    def is_closing(self) -> bool:
        """Return whether closing has begun: nothing reaches the client any more."""
        ...


class State(Enum):
    """Whether the engine delivers to a feed. See the module's docstring."""

    IDLE = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSED = auto()


class Feed:
    """Local subscribers of one channel and the position they have all received."""

    __slots__ = (
        "_attempt",
        "_counters",
        "_held",
        "_hidden",
        "_live",
        "_timer",
        "channel",
        "checked_at",
        "follower",
        "options",
        "state",
    )

    def __init__(
        self, channel: ChannelName, options: ChannelOptions, counters: Counters | None = None
    ) -> None:
        """
        Args:
            channel: the name of the channel.
            options: the options of the channel.
            counters: count the deliveries.
        """
        self.channel = channel
        self.options = options
        self._counters = counters or Counters()
        self._live: dict[Codec, dict[Subscriber, None]] = {}
        self._held: dict[Subscriber, list[Publication]] = {}
        self._hidden: set[Subscriber] = set()
        self.state = State.IDLE
        self._attempt: asyncio.Future[None] | None = None
        """While the feed is opening: done when the attempt to open it has ended."""
        self.follower: StreamFollower | None = None
        """In a recoverable channel, from `open` on."""
        self._timer: Timer | None = None
        self.checked_at = 0.0
        """Monotonic seconds of the last publication or successful position check."""

    # the engine

    def open(self, follower: StreamFollower | None) -> None:
        """Begin an attempt to open. `follower`: of a recoverable channel, not started yet."""
        assert self.state is State.IDLE
        self.state = State.OPENING
        self._attempt = asyncio.get_running_loop().create_future()
        self.follower = follower

    def opened(self, now: float, timer: Timer | None) -> None:
        """End the attempt: the engine delivers.

        Args:
            now: monotonic seconds.
            timer: maintains the feed; it is cancelled when the feed is closed.
        """
        self._end_attempt(None)
        if self.state is State.CLOSED:
            if timer is not None:
                timer.cancel()
            return
        self.state = State.OPEN
        self.checked_at = now
        self._timer = timer

    def failed(self) -> None:
        """End the attempt: the engine could not subscribe. Callers of `wait` fail."""
        self._give_up(EngineUnavailable("the engine could not subscribe"))

    def abandoned(self) -> None:
        """End the attempt: its caller was cancelled. Callers of `wait` go on, and one tries."""
        self._give_up(None)

    def _give_up(self, error: EngineUnavailable | None) -> None:
        if self.follower is not None:
            self.follower.stop()
        if self.state is State.OPENING:
            self.state = State.IDLE
        self._end_attempt(error)

    def _end_attempt(self, error: EngineUnavailable | None) -> None:
        attempt, self._attempt = self._attempt, None
        assert attempt is not None
        if error is None:
            attempt.set_result(None)
        else:
            attempt.set_exception(error)
            attempt.exception()  # there may be no caller that waits

    async def wait(self) -> None:
        """Wait until the attempt that is under way has ended.

        Raises:
            EngineUnavailable: it failed.
        """
        if self._attempt is not None:
            await asyncio.shield(self._attempt)

    def close(self) -> None:
        """Cancel the timer and stop the follower. Nothing is delivered from now on."""
        self.state = State.CLOSED
        if self._timer is not None:
            self._timer.cancel()
        if self.follower is not None:
            self.follower.stop()

    # maintenance

    def schedule(self, deadline: float) -> None:
        """Have the feed maintained at `deadline`, monotonic seconds."""
        if self._timer is not None:
            self._timer.set(deadline)

    def checked(self, now: float) -> None:
        """Record a position check that succeeded. `now`: monotonic seconds."""
        self.checked_at = now

    # subscribers

    def __bool__(self) -> bool:
        return bool(self._live or self._held)

    @property
    def size(self) -> int:
        """The number of subscribers, hidden ones left out."""
        live = sum(len(clients) for clients in self._live.values())
        return live + len(self._held) - len(self._hidden)

    def subscribers(self) -> Iterator[Subscriber]:
        """Iterate over all subscribers, held and hidden ones included."""
        yield from self._held
        for clients in self._live.values():
            yield from clients

    def present(self) -> list[Subscriber]:
        """Return the live subscribers that are not hidden: their presence is refreshed."""
        return [
            client
            for clients in self._live.values()
            for client in clients
            if client not in self._hidden
        ]

    def is_present(self, client: Subscriber) -> bool:
        """Return whether a client is a subscriber, and not hidden."""
        return client not in self._hidden and self._has(client)

    def _has(self, client: Subscriber) -> bool:
        return client in self._held or client in self._live.get(client.codec, ())

    def hold(self, client: Subscriber, *, visible: bool = True) -> None:
        """Add a subscriber, and keep its publications back. Hidden unless `visible`."""
        self._held[client] = []
        if not visible:
            self._hidden.add(client)

    def held(self, client: Subscriber) -> list[Publication]:
        """Return the publications kept back for a subscriber so far, in order of arrival."""
        return self._held.get(client, [])

    def release(self, client: Subscriber) -> None:
        """Make a held subscriber live: it gets what is published from now on."""
        del self._held[client]
        self._live.setdefault(client.codec, {})[client] = None

    def leave(self, client: Subscriber) -> None:
        """Hide a subscriber: its presence is about to be removed, and it with it."""
        if self._has(client):
            self._hidden.add(client)

    def remove(self, client: Subscriber) -> None:
        """Remove a subscriber, live or held; unknown ones are ignored."""
        self._held.pop(client, None)
        self._hidden.discard(client)
        clients = self._live.get(client.codec)
        if clients is not None and client in clients:
            del clients[client]
            if not clients:
                del self._live[client.codec]

    def cut_off(self) -> list[Subscriber]:
        """Stop delivering and return all subscribers, for the caller to close."""
        clients = list(self.subscribers())
        self._live.clear()
        self._hidden.intersection_update(self._held)
        return clients

    # delivery

    def receive(self, publication: Publication, position: StreamPosition, now: float) -> None:
        """Take a publication of a recoverable channel from the engine.

        Args:
            publication: what was published.
            position: its position in the stream.
            now: monotonic seconds.
        """
        assert self.follower is not None
        self.checked_at = now
        self.follower.on_publication(publication, position)

    def publish(self, publication: Publication) -> None:
        """Push a publication to every live subscriber, encoded once per codec.

        It is kept back for held ones.
        """
        for held in self._held.values():
            held.append(publication)
        for codec, clients in self._live.items():
            message = codec.publication(self.channel, publication)
            self._counters.delivered += len(clients)
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
