"""Feed: the local subscribers of one channel, and delivery to them.

Everything here is synchronous and of this process only, but for `wait`.

The feed gets its publications from the engine:

             ┌──────── failed, abandoned ────────┐
             ▼                                   │
            IDLE ───────────── open ──────────► OPENING ── opened ──► OPEN
                                                  ▲                     │
                                                  └──────── follow ─────┘
                                                                close: any ──► CLOSED

    open        a caller begins to subscribe this process in the engine
    follow      a caller begins to follow the stream of the channel, because the first subscriber
                with a position comes; what fails then ends in OPEN
    opened      the engine delivers: all callers that wait go on
    failed      the engine refused: all callers that wait fail with it, the next one tries again
    abandoned   the caller was cancelled: one of those that wait tries instead
    close       the last subscriber has left, or the node ends

Each subscriber:

    hold ──► HELD ── release ──► LIVE        leave: it is hidden      remove: it is gone

A held subscriber waits for its reply, and its publications with it. A live one gets each at once.

Invariants:

- A subscriber is held or live, never both.
- A subscriber with a position gets publications by way of the follower: every live one has received
  all up to the follower's position, and none after it, and a held one has in `held` those delivered
  since `hold`. A subscriber without one gets them as the engine delivers them, also in `held`: the
  follower may be behind, and bring later what such a subscriber had before it came back.
- A hidden subscriber gets publications, joins and leaves, but is neither counted nor present:
  it is an observer, or it is leaving.
- Only a listening subscriber gets joins and leaves.
- When the stream is lost, subscribers with a position are cut off. All others go on.
- A subscriber with deltas whose group has a base has received the newest publication of its lane,
  and nothing after it.
- An open feed with a subscriber that has a position has a follower. Only its follower calls
  `publish_followed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

from realtime.config.options import ChannelOptions
from realtime.errors import EngineUnavailable
from realtime.metrics import Deliveries
from realtime.node.subscriber import Subscriber
from realtime.protocol import deltas
from realtime.protocol.codec import Codec
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.streams.follower import StreamFollower
from realtime.streams.tag_filters import TagsFilter
from realtime.timers import Timer


class FeedState(Enum):
    """Whether the engine delivers to a feed. See the module's docstring."""

    IDLE = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSED = auto()


class Group(Struct, frozen=True, gc=False):
    """What live subscribers have in common that get the same bytes."""

    codec: Codec
    tags_filter: TagsFilter | None = None
    """They get only what passes this."""
    delta: bool = False
    """Whether they take deltas."""
    has_base: bool = False
    """With `delta`: whether they have the publication before. Else they get the next one whole."""


Lane: TypeAlias = dict[Group, dict[Subscriber, None]]
"""Live subscribers that get publications in the same way, by group."""


class Encodings:
    """The messages of the newest publication, each made once for the two lanes of a feed.

    Deltas are not among them: the lanes may differ in the publication before.
    """

    __slots__ = ("_messages", "_publication")

    def __init__(self) -> None:
        self._publication: Publication | None = None
        self._messages: dict[Codec, bytes] = {}

    def encode(self, codec: Codec, channel: ChannelName, publication: Publication) -> bytes:
        if self._publication is not publication:
            self._publication = publication
            self._messages.clear()
        message = self._messages.get(codec)
        if message is None:
            message = self._messages[codec] = codec.publication(channel, publication)
        return message


@dataclass(slots=True, eq=False, repr=False)
class ChannelFeed:
    """Local subscribers of one channel and the position they have all received."""

    channel: ChannelName
    options: ChannelOptions
    deliveries: Deliveries = field(default_factory=lambda: Deliveries(""))
    """Counts those in its namespace."""
    state: FeedState = FeedState.IDLE
    follower: StreamFollower | None = None
    """From the first subscriber with a position on."""
    checked_at: float = 0.0
    """Monotonic seconds of the last publication or successful position check."""
    _live: Lane = field(default_factory=dict)
    """The live subscribers without a position."""
    _followed: Lane = field(default_factory=dict)
    """The live subscribers with a position."""
    _encodings: Encodings | None = None
    """None until there are subscribers of both kinds."""
    _grouped: dict[Subscriber, Group] | None = None
    """The live subscribers with a filter or deltas; None until there is one."""
    _bases: dict[bool, Publication] | None = None
    """The newest publication of each lane, True for the followed one; None without deltas."""
    _held: dict[Subscriber, list[Publication]] = field(default_factory=dict)
    _hidden: set[Subscriber] = field(default_factory=set)
    _listening: set[Subscriber] | None = None
    """None until there is one: most channels have no joins."""
    _was_open: bool = False
    """Whether the attempt is one to follow."""
    _attempt: asyncio.Future[None] | None = None
    """While the feed is opening: done when the attempt to open it has ended."""
    _timer: Timer | None = None

    # the engine

    @property
    def has_opened(self) -> bool:
        """Whether an attempt to open it has succeeded."""
        return self._was_open or self.state not in (FeedState.IDLE, FeedState.OPENING)

    def open(self, follower: StreamFollower | None) -> None:
        """Begin an attempt to open. `follower`: not started; None if no client has a position."""
        assert self.state is FeedState.IDLE
        self._begin_attempt(follower)

    def follow(self, follower: StreamFollower) -> None:
        """Begin an attempt to follow the stream. `follower`: not started yet."""
        assert self.state is FeedState.OPEN
        assert self.follower is None
        self._was_open = True
        self._begin_attempt(follower)

    def _begin_attempt(self, follower: StreamFollower | None) -> None:
        self.state = FeedState.OPENING
        self._attempt = asyncio.get_running_loop().create_future()
        self.follower = follower

    def opened(self, now: float, timer: Timer | None) -> None:
        """End the attempt: the engine delivers.

        Args:
            now: monotonic seconds.
            timer: maintains the feed; it is cancelled when the feed is closed. None: no other one.
        """
        self._end_attempt(None)
        if self.state is FeedState.CLOSED:
            if timer is not None:
                timer.cancel()
            return
        self.state = FeedState.OPEN
        self.checked_at = now
        if timer is not None:
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
        if self.state is FeedState.OPENING:
            self.follower = None
            self.state = FeedState.OPEN if self._was_open else FeedState.IDLE
        self._end_attempt(error)

    def _end_attempt(self, error: EngineUnavailable | None) -> None:
        attempt, self._attempt = self._attempt, None
        self._was_open = False
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
        self.state = FeedState.CLOSED
        if self._timer is not None:
            self._timer.cancel()
        if self.follower is not None:
            self.follower.stop()

    # maintenance

    @property
    def is_maintained(self) -> bool:
        """Whether the feed has a timer."""
        return self._timer is not None

    def schedule(self, deadline: float) -> None:
        """Have the feed maintained at `deadline`, monotonic seconds."""
        if self._timer is not None:
            self._timer.set(deadline)

    # subscribers

    def checked(self, now: float) -> None:
        """Record a position check that succeeded. `now`: monotonic seconds."""
        self.checked_at = now

    def __bool__(self) -> bool:
        return bool(self._live or self._followed or self._held)

    @property
    def size(self) -> int:
        """The number of subscribers, hidden ones left out."""
        live = sum(len(clients) for lane in self._lanes() for clients in lane.values())
        return live + len(self._held) - len(self._hidden)

    def subscribers(self) -> Iterator[Subscriber]:
        """Iterate over all subscribers, held and hidden ones included."""
        yield from self._held
        yield from self._all_live()

    def _lanes(self) -> tuple[Lane, Lane]:
        return self._live, self._followed

    def _all_live(self) -> Iterator[Subscriber]:
        for lane in self._lanes():
            for clients in lane.values():
                yield from clients

    def present(self) -> list[Subscriber]:
        """Return the live subscribers that are not hidden: their presence is refreshed."""
        return [client for client in self._all_live() if client not in self._hidden]

    def is_present(self, client: Subscriber) -> bool:
        """Return whether a client is a subscriber, and not hidden."""
        return client not in self._hidden and self._has(client)

    def _has(self, client: Subscriber) -> bool:
        group = self._group(client)
        return client in self._held or any(client in lane.get(group, ()) for lane in self._lanes())

    def _group(self, client: Subscriber) -> Group:
        group = None if self._grouped is None else self._grouped.get(client)
        return group or Group(client.codec)

    @property
    def position(self) -> StreamPosition | None:
        """What all live subscribers with a position have reached; None where none has one."""
        return None if self.follower is None else self.follower.position

    def hold(self, client: Subscriber, *, visible: bool = True, hears_joins: bool = True) -> None:
        """Add a subscriber, and keep its publications back.

        Args:
            visible: False for a hidden one.
            hears_joins: True for a listening one.
        """
        self._held[client] = []
        if not visible:
            self._hidden.add(client)
        if hears_joins:
            if self._listening is None:
                self._listening = set()
            self._listening.add(client)

    def held(self, client: Subscriber) -> list[Publication]:
        """Return the publications kept back for a subscriber so far, in order of arrival."""
        return self._held.get(client, [])

    def release(
        self,
        client: Subscriber,
        tags_filter: TagsFilter | None = None,
        *,
        delta: bool = False,
        base: Publication | None = None,
    ) -> None:
        """Make a held subscriber live: it gets what is published now, and passes its filter.

        With a position it has everything up to `position`, what was kept back for it included.
        Call it in the turn of the loop in which these were read.

        Args:
            delta: whether it takes deltas.
            base: with `delta`, the last publication that it has; None: none yet.
        """
        del self._held[client]
        lane = self._followed if client.has_position(self.channel) else self._live
        if tags_filter is not None or delta:
            has_base = delta and self._has_base(lane, base)
            self._grouped = self._grouped or {}
            self._grouped[client] = Group(client.codec, tags_filter, delta, has_base)
        lane.setdefault(self._group(client), {})[client] = None

    def _has_base(self, lane: Lane, base: Publication | None) -> bool:
        """Return whether the next delta of a lane is one to the data of `base`."""
        self._bases = self._bases or {}
        if base is None:
            return False
        return self._bases.setdefault(lane is self._followed, base).data == base.data

    def leave(self, client: Subscriber, *, hears_leave: bool = True) -> None:
        """Hide a subscriber: its presence is about to be removed, and it with it.

        Args:
            hears_leave: False to keep its own leave from it: it listens no more then.
        """
        if self._has(client):
            self._hidden.add(client)
            if not hears_leave and self._listening is not None:
                self._listening.discard(client)

    def remove(self, client: Subscriber) -> None:
        """Remove a subscriber, live or held; unknown ones are ignored."""
        self._held.pop(client, None)
        self._hidden.discard(client)
        if self._listening is not None:
            self._listening.discard(client)
        group = self._group(client)
        for lane in self._lanes():
            clients = lane.get(group)
            if clients is not None and client in clients:
                del clients[client]
                if not clients:
                    del lane[group]
        if self._grouped is not None:
            self._grouped.pop(client, None)
            if not self._grouped:
                self._grouped = self._bases = None

    def cut_off(self) -> list[Subscriber]:
        """Stop delivering to the subscribers with a position, and return them.

        The caller ends their subscriptions. Held ones are among them.
        """
        lost = [client for client in self._held if client.has_position(self.channel)]
        live = [client for clients in self._followed.values() for client in clients]
        for client in live:
            self.remove(client)
        return lost + live

    # delivery

    def receive(self, publication: Publication, position: StreamPosition, now: float) -> None:
        """Take a publication from the engine, where there is a follower.

        Args:
            publication: what was published.
            position: its position in the stream.
            now: monotonic seconds.
        """
        assert self.follower is not None
        self.checked_at = now
        for client, held in self._held.items():
            if not client.has_position(self.channel):
                held.append(publication)
        if self._live:
            self._push(publication, self._live)
        self.follower.on_publication(publication, position)

    def publish(self, publication: Publication) -> None:
        """Push a publication to every live subscriber, encoded once per codec.

        It is kept back for held ones.
        """
        for held in self._held.values():
            held.append(publication)
        for lane in self._lanes():
            if lane:
                self._push(publication, lane)

    def publish_followed(self, publication: Publication) -> None:
        """As `publish`, for the subscribers with a position."""
        for client, held in self._held.items():
            if client.has_position(self.channel):
                held.append(publication)
        if self._followed:
            self._push(publication, self._followed)

    def _push(self, publication: Publication, lane: Lane) -> None:
        shared = None
        if self._live and self._followed:
            shared = self._encodings = self._encodings or Encodings()
        for group, clients in lane.items():
            tags_filter = group.tags_filter
            if not (
                tags_filter is None
                or publication.removed  # its tags may not be those of the entry
                or tags_filter.matches(publication.tags)
            ):
                continue
            if group.delta:
                message = self._encode_delta(publication, group, lane)
            elif shared is not None:
                message = shared.encode(group.codec, self.channel, publication)
            else:
                message = group.codec.publication(self.channel, publication)
            self.deliveries.count += len(clients)
            for client in clients:
                client.push(message)
        if self._bases is not None:
            self._keep_base(publication, lane)

    def _encode_delta(self, publication: Publication, group: Group, lane: Lane) -> bytes:
        assert self._bases is not None
        base = self._bases[lane is self._followed] if group.has_base else None
        return group.codec.publication(self.channel, deltas.since(base, publication, group.codec))

    def _keep_base(self, publication: Publication, lane: Lane) -> None:
        """Make the next delta one to this publication, which all in the lane have now."""
        assert self._grouped is not None
        assert self._bases is not None
        self._bases[lane is self._followed] = publication
        for group in [each for each in lane if each.delta and not each.has_base]:
            clients, based = lane.pop(group), Group(group.codec, delta=True, has_base=True)
            lane.setdefault(based, {}).update(clients)
            self._grouped.update(dict.fromkeys(clients, based))

    def broadcast(self, encode: Callable[[Codec], bytes]) -> None:
        """Push a join or leave to every live subscriber that listens, encoded once per codec.

        Held ones learn from presence, which they can ask for after their reply.
        """
        if not self._listening:
            return
        messages: dict[Codec, bytes] = {}
        for client in self._all_live():
            if client in self._listening:
                if (message := messages.get(client.codec)) is None:
                    message = messages[client.codec] = encode(client.codec)
                client.notify(message)
