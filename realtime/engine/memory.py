"""The memory engine: one process, nothing to install, gone with the process.

For development, tests, and sites that are served by exactly one process. Streams and
presence live in dictionaries; delivery is a call to the node.

Memory is bounded, whatever clients do. A stream exists from the first publication into a
channel, not from the first look at it, because clients may look at any name; until then a
channel's position is offset 0 in the engine's own epoch, which the first publication
continues. And of streams in which nothing is kept and nobody is interested, only so many
positions are remembered, because clients may be allowed to publish into any name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from realtime.config.options import ChannelOptions
from realtime.engine.base import History, NodeInfo, NodeStatus, Receiver, SurveyID, new_epoch
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)
from realtime.timers import Timer, Timers

RESTING_ALLOWED = 100_000
"""Streams of which only the position is left. More are forgotten, the longest resting first, so
that clients that may publish cannot fill memory with names; those who come back to a forgotten
one are told that they did not recover."""


class _Stream:
    """The publications of one channel."""

    __slots__ = ("epoch", "expiry", "forget", "publications", "top")

    def __init__(self, epoch: str, expiry: Timer) -> None:
        self.epoch = epoch
        self.top = 0
        self.publications: deque[Publication] = deque()
        self.expiry = expiry
        """Clears the publications at the end of their lifetime."""
        self.forget: Timer | None = None
        """Forgets the stream when it has not been used for long."""

    @property
    def position(self) -> StreamPosition:
        return StreamPosition(self.top, self.epoch)


class _Presence:
    """The clients present in one channel, with the time until which each is."""

    __slots__ = ("clients", "expiry")

    def __init__(self, expiry: Timer) -> None:
        self.clients: dict[ClientID, tuple[ClientInfo, float]] = {}
        self.expiry = expiry


class MemoryEngine:
    """See `engine.base.Engine` for what the methods promise."""

    shared = False

    def __init__(self, timers: Timers, *, meta_lifetime: int = 0) -> None:
        """`meta_lifetime`: seconds the position of an unused channel is kept; 0: for ever."""
        self._timers = timers
        self._meta_lifetime = meta_lifetime
        self._epoch = new_epoch()
        self._streams: dict[ChannelName, _Stream] = {}
        self._presence: dict[ChannelName, _Presence] = {}
        self._resting: dict[ChannelName, None] = {}
        """Streams without publications and subscribers, longest first."""
        self._subscribed: dict[ChannelName, str] = {}
        """Subscribed channel → the epoch then, which subscribers of an unused one were told."""
        self._receiver: Receiver | None = None

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def stop(self) -> None:
        self._receiver = None

    # delivery

    async def subscribe(self, channel: ChannelName) -> None:
        first = channel not in self._subscribed
        self._subscribed[channel] = self._epoch
        self._resting.pop(channel, None)
        if first and self._receiver is not None:
            self._receiver.on_occupied(channel)

    async def unsubscribe(self, channel: ChannelName) -> None:
        if self._subscribed.pop(channel, None) is not None and self._receiver is not None:
            self._receiver.on_vacated(channel)
        if (stream := self._streams.get(channel)) is not None:
            self._used(channel, stream)
            self._rest(channel, stream)

    async def publish(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> StreamPosition | None:
        position: StreamPosition | None = None
        if options.keeps_history:
            publication, position = self._append(channel, publication, options)
        if self._receiver is not None and channel in self._subscribed:
            self._receiver.on_publication(channel, publication, position)
        return position

    async def publish_many(
        self, publications: Sequence[tuple[ChannelName, Publication, ChannelOptions]]
    ) -> list[BaseException | None]:
        for publication in publications:
            await self.publish(*publication)
        return [None] * len(publications)

    async def publish_join(self, channel: ChannelName, info: ClientInfo) -> None:
        if self._receiver is not None:
            self._receiver.on_join(channel, info)

    async def publish_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        if self._receiver is not None:
            self._receiver.on_leave(channel, info)

    # streams

    async def history(self, channel: ChannelName, since: int = 0) -> History:
        stream = self._streams.get(channel)
        if stream is None:
            return History((), self._beginning(channel))
        self._used(channel, stream)
        kept = tuple(p for p in stream.publications if p.offset >= since)
        return History(kept, stream.position)

    async def position(self, channel: ChannelName) -> StreamPosition:
        stream = self._streams.get(channel)
        if stream is None:
            return self._beginning(channel)
        self._used(channel, stream)
        return stream.position

    async def remove_history(self, channel: ChannelName) -> None:
        stream = self._streams.get(channel)
        if stream is not None:
            stream.publications.clear()
            self._rest(channel, stream)

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        stream = self._streams.get(channel)
        if stream is not None and stream.epoch == epoch:
            stream.epoch = self._epoch = new_epoch()

    def _append(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> tuple[Publication, StreamPosition]:
        stream = self._streams.get(channel)
        if stream is None:
            stream = self._streams[channel] = self._new_stream(channel)
        self._resting.pop(channel, None)
        stream.top += 1
        publication = msgspec.structs.replace(publication, offset=stream.top)
        stream.publications.append(publication)
        while len(stream.publications) > options.history_size:
            stream.publications.popleft()
        # every publication restarts the lifetime of all that is kept
        stream.expiry.set(self._timers.now() + options.history_lifetime)
        self._used(channel, stream)
        return publication, stream.position

    def _new_stream(self, channel: ChannelName) -> _Stream:
        expiry = self._timers.timer(lambda: self._expire(channel))
        return _Stream(self._beginning(channel).epoch, expiry)

    def _beginning(self, channel: ChannelName) -> StreamPosition:
        """The position of a channel without a stream."""
        return StreamPosition(0, self._subscribed.get(channel, self._epoch))

    def _expire(self, channel: ChannelName) -> None:
        stream = self._streams[channel]
        stream.publications.clear()
        self._rest(channel, stream)

    def _rest(self, channel: ChannelName, stream: _Stream) -> None:
        """Nobody subscribes and nothing is kept: only the position is remembered, for so many."""
        if stream.publications or channel in self._subscribed:
            return
        self._resting[channel] = None
        if len(self._resting) > RESTING_ALLOWED:
            self._drop(next(iter(self._resting)))
            self._epoch = new_epoch()

    def _drop(self, channel: ChannelName) -> None:
        self._resting.pop(channel, None)
        stream = self._streams.pop(channel)
        stream.expiry.cancel()
        if stream.forget is not None:
            stream.forget.cancel()

    def _used(self, channel: ChannelName, stream: _Stream) -> None:
        if self._meta_lifetime <= 0:
            return
        if stream.forget is None:
            stream.forget = self._timers.timer(self._forget(channel))
        stream.forget.set(self._timers.now() + self._meta_lifetime)

    def _forget(self, channel: ChannelName) -> Callable[[], None]:
        def forget() -> None:
            if channel in self._subscribed:
                return
            self._drop(channel)
            # A stream that begins again must not look like the one forgotten here.
            self._epoch = new_epoch()

        return forget

    # presence

    async def add_presence(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        until = self._timers.now() + lifetime
        present = self._presence.get(channel)
        if present is None:
            expiry = self._timers.timer(lambda: self._expire_presence(channel))
            present = self._presence[channel] = _Presence(expiry)
        for info in clients:
            present.clients[info.client] = (info, until)
        if present.expiry.deadline is None:
            present.expiry.set(until)

    async def remove_presence(self, channel: ChannelName, client: ClientID) -> None:
        present = self._presence.get(channel)
        if present is not None:
            present.clients.pop(client, None)
            self._drop_empty(channel, present)

    async def presence(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        present = self._presence.get(channel)
        if present is None:
            return {}
        now = self._timers.now()
        return {client: info for client, (info, until) in present.clients.items() if until > now}

    def _expire_presence(self, channel: ChannelName) -> None:
        present = self._presence[channel]
        now = self._timers.now()
        for client, (_, until) in list(present.clients.items()):
            if until <= now:
                del present.clients[client]
        if present.clients:
            present.expiry.set(min(until for _, until in present.clients.values()))
        self._drop_empty(channel, present)

    def _drop_empty(self, channel: ChannelName, present: _Presence) -> None:
        if not present.clients:
            present.expiry.cancel()
            del self._presence[channel]

    # the service

    async def channels(self) -> list[ChannelName]:
        return list(self._subscribed)

    async def nodes(self) -> list[NodeInfo]:
        return []

    async def statuses(self) -> list[NodeStatus]:
        return []

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        pass  # there is nobody to ask

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        return []

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        pass

    async def round_trip(self) -> float | None:
        return None

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        return owner  # there is no other node

    async def owner(self, name: str) -> str | None:
        return None

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        pass

    async def withdraw(self, node: NodeInfo) -> None:
        pass
