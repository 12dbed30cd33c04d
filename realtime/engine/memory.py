"""The memory engine: one process, nothing to install, gone with the process.

For development, tests, and sites that run exactly one process. Streams and presence live in
dictionaries; delivery is a call to the node. There is no cluster.

Memory is bounded, whatever clients do:

- Clients may read any channel name. A stream therefore begins with the first publication, not
  with the first reading. Until then the position of a channel is offset 0 in the engine's own
  epoch, which the first publication adopts.
- Clients may be allowed to publish into any channel name. Of idle streams, which have neither
  publications nor subscribers, only `MAX_IDLE_STREAMS` positions are remembered.
- Of idempotency keys only digests are remembered, for their lifetime. Beyond `MAX_KEYS`, those
  whose lifetime ends first are forgotten, and a repetition with one of them is published again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice

import msgspec

from realtime.config.options import ChannelOptions
from realtime.engine.base import Engine, History, Notice, Outgoing, Published, Receiver
from realtime.engine.epochs import OwnLifetime, new_epoch, no_lifetime
from realtime.engine.lists import Kind, Swept
from realtime.engine.maps import Refusal
from realtime.engine.memory_maps import MemoryMaps
from realtime.engine.seen import MAX_SEEN
from realtime.engine.versions import Version
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
    UserID,
)
from realtime.timers import Timer, Timers

MAX_IDLE_STREAMS = 100_000
"""Idle streams whose position is remembered. Beyond that, those that have been idle the longest are
forgotten; a client that comes back to one of them does not recover."""

MAX_KEYS = 100_000
"""Keys that are remembered, some 30 MB."""


class MemoryEngine(Engine):
    """See `engine.base.Engine` for the contract."""

    broker: MemoryBroker
    presence: MemoryPresence
    lists: MemoryLists

    def __init__(
        self, timers: Timers, *, meta_lifetime: int = 0, own_lifetime: OwnLifetime = no_lifetime
    ) -> None:
        """`meta_lifetime`: seconds the position of an unused channel is kept; 0: forever."""
        self.broker = MemoryBroker(timers, meta_lifetime, own_lifetime)
        self.presence = MemoryPresence(timers)
        self.lists = MemoryLists()
        self.seen = self.lists.seen
        self.maps = self.broker.maps

    async def start(self, receiver: Receiver, uid: str) -> None:
        self.broker.receiver = self.lists.receiver = receiver

    async def stop(self) -> None:
        self.broker.receiver = self.lists.receiver = None


class _Stream:
    """The stream of one channel."""

    __slots__ = ("epoch", "expiry", "forget", "least", "publications", "time", "top", "version")

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self.top = 0
        self.time = 0
        """When the last publication was kept, Unix ms."""
        self.publications: deque[Publication] | tuple[()] = ()
        """A deque while there are any: an empty one is larger than all the rest."""
        self.expiry: Timer | None = None
        """Removes the publications at the end of their lifetime; None where there are none."""
        self.forget: Timer | None = None
        """Forgets the stream when it was not used for `meta_lifetime`."""
        self.least = 0
        """Seconds for which it is kept at least: its publications need it."""
        self.version: Version | None = None
        """Of the last publication that had one."""

    @property
    def position(self) -> StreamPosition:
        return StreamPosition(self.top, self.epoch)

    @property
    def top_uid(self) -> str:
        """The UID of the last publication; "" when it is not kept any more."""
        return self.publications[-1].uid if self.publications else ""

    def position_at(self, at: int) -> StreamPosition:
        """Return the position at a time in Unix ms; see `Streams.positions`."""
        if self.time <= at:
            return self.position
        for publication in reversed(self.publications):
            if publication.time <= at:
                return StreamPosition(publication.offset, self.epoch)
        return StreamPosition(0, self.epoch)

    def keep(self, publication: Publication, size: int) -> None:
        """Add a publication, and drop the oldest ones above this number."""
        self.time = publication.time
        publications = self.publications or deque()
        publications.append(publication)
        while len(publications) > size:
            publications.popleft()
        self.publications = publications

    def read(
        self, start: int | None, limit: int | None, *, reverse: bool
    ) -> tuple[Publication, ...]:
        """Return publications; the arguments are those of `Streams.history`."""
        kept = len(self.publications)
        if start is None:
            skipped = 0
        elif reverse:
            skipped = self.top - start
        else:
            skipped = start - (self.top - kept + 1)  # the oldest: there are no gaps
        begin = min(max(skipped, 0), kept)
        end = kept if limit is None else min(begin + limit, kept)
        ordered = reversed(self.publications) if reverse else self.publications
        return tuple(islice(ordered, begin, end))

    def clear(self) -> None:
        """Remove the publications, and what only they need."""
        self.publications = ()
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None


class MemoryBroker:
    """See `engine.base.Broker` for the contract."""

    def __init__(
        self, timers: Timers, meta_lifetime: int = 0, own_lifetime: OwnLifetime = no_lifetime
    ) -> None:
        self.receiver: Receiver | None = None
        self._timers = timers
        self._meta_lifetime = meta_lifetime
        self._own_lifetime = own_lifetime
        self._once_keys = OnceKeys(timers)
        self.maps = MemoryMaps(timers, self._position)
        self._epoch = new_epoch()
        """The epoch of the next stream that begins."""
        self._streams: dict[ChannelName, _Stream] = {}
        self._idle: dict[ChannelName, None] = {}
        """Channels of idle streams, the longest idle first."""
        self._subscribed: dict[ChannelName, str] = {}
        """Subscribed channel → the epoch of the engine then. Subscribers of a channel without a
        stream were given that epoch, so its stream has to begin in it."""

    # delivery

    def shard(self, channel: ChannelName) -> int:
        return 0

    async def subscribe(self, channel: ChannelName) -> None:
        is_first = channel not in self._subscribed
        self._subscribed[channel] = self._epoch
        self._idle.pop(channel, None)
        if is_first and self.receiver is not None:
            self.receiver.on_first(Kind.CHANNELS, channel)

    async def unsubscribe(self, channel: ChannelName) -> None:
        if self._subscribed.pop(channel, None) is not None and self.receiver is not None:
            self.receiver.on_last(Kind.CHANNELS, channel)
        if (stream := self._streams.get(channel)) is not None:
            self._touch(channel, stream)
            self._note_idle(channel, stream)

    async def publish(self, outgoing: Outgoing) -> Published:
        channel, publication = outgoing.channel, outgoing.publication
        once, expect, version = outgoing.once, outgoing.expect, outgoing.version
        if once is not None and (digest := once.digest(channel)) in self._once_keys.positions:
            return self._refused(outgoing, self._once_keys.positions[digest], "idempotency")
        if publication.key:
            expect = version = None  # `refusal` compares them with the entry
            if reason := self.maps.refusal(outgoing):
                keeps = outgoing.options.keeps_history
                return self._refused(outgoing, self._position(channel) if keeps else None, reason)
        position: StreamPosition | None = None
        if outgoing.options.keeps_history:
            stream = self._streams.get(channel)
            if expect is not None:
                top = self._first_position(channel) if stream is None else stream.position
                if expect not in (top, top.offset):
                    return Published(top, kept=False)
            if version is not None and stream is not None and not version.follows(stream.version):
                return Published(stream.position, kept=False)
            publication, position = self._append(channel, publication, outgoing.options)
            if version is not None:
                self._streams[channel].version = version
        if publication.key:
            self.maps.change(outgoing, publication)
        if once is not None:
            self._once_keys.add(digest, position, once.lifetime)
        if self.receiver is not None and channel in self._subscribed:
            self.receiver.on_publication(channel, publication, position)
        return Published(position)

    def _refused(
        self, outgoing: Outgoing, position: StreamPosition | None, reason: Refusal
    ) -> Published:
        key = outgoing.publication.key
        if not key or reason == "key_not_found":
            return Published(position, False, reason if key else "")
        return Published(position, False, reason, self.maps.current(outgoing.channel, key))

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        return [await self.publish(outgoing) for outgoing in publications]

    async def notify(self, channel: ChannelName, notice: Notice) -> None:
        if self.receiver is not None:
            self.receiver.on_notice(channel, notice)

    # streams

    async def history(
        self,
        channel: ChannelName,
        start: int | None = None,
        limit: int | None = None,
        *,
        reverse: bool = False,
    ) -> History:
        stream = self._streams.get(channel)
        if stream is None:
            return History((), self._first_position(channel))
        self._touch(channel, stream)
        kept = stream.read(start, limit, reverse=reverse)
        return History(kept, stream.position, stream.top_uid)

    async def positions(
        self, channels: Sequence[ChannelName], at: int | None = None
    ) -> list[StreamPosition]:
        return [self._position(channel, at) for channel in channels]

    def _position(self, channel: ChannelName, at: int | None = None) -> StreamPosition:
        stream = self._streams.get(channel)
        if stream is None:
            return self._first_position(channel)
        self._touch(channel, stream)
        return stream.position if at is None else stream.position_at(at)

    async def remove_history(self, channel: ChannelName) -> None:
        stream = self._streams.get(channel)
        if stream is not None:
            stream.clear()
            self._note_idle(channel, stream)

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        stream = self._streams.get(channel)
        if stream is not None and stream.epoch == epoch:
            stream.epoch = self._epoch = new_epoch()

    def _append(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> tuple[Publication, StreamPosition]:
        stream = self._streams.get(channel)
        if stream is None:
            stream = _Stream(self._first_position(channel).epoch)
            self._streams[channel] = stream
        self._idle.pop(channel, None)
        stream.top += 1
        publication = msgspec.structs.replace(
            publication, offset=stream.top, time=time.time_ns() // 1_000_000
        )
        stream.keep(publication, options.history_size)
        if stream.expiry is None:
            stream.expiry = self._timers.timer(lambda: self._expire(channel))
        # every publication restarts the lifetime of all that are kept
        stream.expiry.set(self._timers.now() + options.history_lifetime)
        stream.least = 2 * options.history_lifetime
        self._touch(channel, stream, options.meta_ttl)
        return publication, stream.position

    def _first_position(self, channel: ChannelName) -> StreamPosition:
        """Return the position of a channel without a stream."""
        return StreamPosition(0, self._subscribed.get(channel, self._epoch))

    def _expire(self, channel: ChannelName) -> None:
        stream = self._streams[channel]
        stream.clear()
        self._note_idle(channel, stream)

    def _note_idle(self, channel: ChannelName, stream: _Stream) -> None:
        """Remember only the position of an idle stream, for at most `MAX_IDLE_STREAMS` streams."""
        if stream.publications or channel in self._subscribed or channel in self.maps:
            return
        self._idle[channel] = None
        if len(self._idle) > MAX_IDLE_STREAMS:
            self._forget(next(iter(self._idle)))

    def _touch(self, channel: ChannelName, stream: _Stream, own: int | None = None) -> None:
        """Restart the time after which an unused stream is forgotten.

        `own`: the lifetime of its namespace, if it is known.
        """
        lifetime = (self._own_lifetime(channel) if own is None else own) or self._meta_lifetime
        if lifetime <= 0:
            return
        if stream.forget is None:
            stream.forget = self._timers.timer(lambda: self._forget_unused(channel))
        stream.forget.set(self._timers.now() + max(lifetime, stream.least))

    def _forget_unused(self, channel: ChannelName) -> None:
        if channel not in self._subscribed and channel not in self.maps:
            self._forget(channel)

    def _forget(self, channel: ChannelName) -> None:
        self._drop(channel)
        # a stream that begins again must not look like the one that was forgotten
        self._epoch = new_epoch()

    def _drop(self, channel: ChannelName) -> None:
        self._idle.pop(channel, None)
        stream = self._streams.pop(channel)
        stream.clear()
        if stream.forget is not None:
            stream.forget.cancel()


class _ChannelPresence:
    """The clients in one channel, each with the time at which its entry expires."""

    __slots__ = ("clients", "expiry")

    def __init__(self, expiry: Timer) -> None:
        self.clients: dict[ClientID, tuple[ClientInfo, float]] = {}
        self.expiry = expiry


class MemoryPresence:
    """See `engine.base.Presence` for the contract."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._channels: dict[ChannelName, _ChannelPresence] = {}

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        expires_at = self._timers.now() + lifetime
        present = self._channels.get(channel)
        if present is None:
            expiry = self._timers.timer(lambda: self._expire(channel))
            present = self._channels[channel] = _ChannelPresence(expiry)
        for info in clients:
            present.clients[info.client] = (info, expires_at)
        if present.expiry.deadline is None:
            present.expiry.set(expires_at)

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        present = self._channels.get(channel)
        if present is not None:
            present.clients.pop(client, None)
            self._drop_if_empty(channel, present)

    async def get(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        present = self._channels.get(channel)
        if present is None:
            return {}
        now = self._timers.now()
        return {
            client: info
            for client, (info, expires_at) in present.clients.items()
            if expires_at > now
        }

    def _expire(self, channel: ChannelName) -> None:
        present = self._channels[channel]
        now = self._timers.now()
        for client, (_, expires_at) in list(present.clients.items()):
            if expires_at <= now:
                del present.clients[client]
        if present.clients:
            present.expiry.set(min(expires_at for _, expires_at in present.clients.values()))
        self._drop_if_empty(channel, present)

    def _drop_if_empty(self, channel: ChannelName, present: _ChannelPresence) -> None:
        if not present.clients:
            present.expiry.cancel()
            del self._channels[channel]


class MemoryLists:
    """See `engine.lists.NodeLists` for the contract. Nothing is swept: the node is the service."""

    def __init__(self) -> None:
        self.receiver: Receiver | None = None
        self.seen = MemorySeenUsers()
        self._names: dict[Kind, set[str]] = {kind: set() for kind in Kind}

    def add(self, kind: Kind, name: str) -> None:
        names = self._names[kind]
        if name not in names:
            names.add(name)
            if self.receiver is not None:
                self.receiver.on_first(kind, name)

    def discard(self, kind: Kind, name: str) -> None:
        names = self._names[kind]
        if name not in names:
            return
        names.remove(name)
        if kind is Kind.USERS:
            self.seen.on_offline(name)
        if self.receiver is not None:
            self.receiver.on_last(kind, name)

    async def listed(self, kind: Kind, names: Sequence[str]) -> list[bool]:
        return [name in self._names[kind] for name in names]

    async def names(self, kind: Kind) -> Collection[str]:
        return frozenset(self._names[kind])

    async def size(self, kind: Kind) -> int:
        return len(self._names[kind])

    async def sweep(self, attempt: str) -> Swept | None:
        return None


class MemorySeenUsers:
    """See `engine.seen.SeenUsers` for the contract."""

    def __init__(self) -> None:
        self._notes = False
        self._users: dict[UserID, int] = {}

    def on_offline(self, user: UserID) -> None:
        """Note that a user went offline, if that is to be noted and there is room."""
        if self._notes and len(self._users) < MAX_SEEN:
            self._users[user] = int(time.time() * 1000)

    def note(self) -> None:
        self._notes = True

    async def users(self, limit: int) -> Mapping[UserID, int]:
        return dict(islice(self._users.items(), limit))

    async def at(self, user: UserID) -> int | None:
        return self._users.get(user)

    async def forget(self, users: Mapping[UserID, int]) -> None:
        for user, at in users.items():
            if self._users.get(user) == at:
                del self._users[user]


class OnceKeys:
    """Digests of used keys, each with the position of its publication; None without history."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self.positions: dict[str, StreamPosition | None] = {}
        self._ends: list[tuple[float, str]] = []
        """A heap of the ends of lifetimes, one for each key."""
        self._timer = timers.timer(self._expire)

    def add(self, digest: str, position: StreamPosition | None, lifetime: float) -> None:
        """Remember an unused key for `lifetime` seconds."""
        self.positions[digest] = position
        heappush(self._ends, (self._timers.now() + lifetime, digest))
        if len(self._ends) > MAX_KEYS:
            self._forget_first()
        self._timer.set(self._ends[0][0])

    def _forget_first(self) -> None:
        del self.positions[heappop(self._ends)[1]]

    def _expire(self) -> None:
        while self._ends and self._ends[0][0] <= self._timers.now():
            self._forget_first()
        if self._ends:
            self._timer.set(self._ends[0][0])
