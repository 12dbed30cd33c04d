"""Listeners: clients whose URL names the channels. They send neither connect nor subscribe.

    identified ──► every channel permitted ──► begin: the head leaves ──► missed events ──► live
        │                    │                                │
        └── refused ◄────────┘                                └── fails: ends, the listener returns

A listener may read all the channels that it asks for, or it is refused before anything is sent.
What has to wait for the engine comes after the head.

docs/protocol.md, 17.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from realtime.clients.checks import Attempt
from realtime.clients.client import Client
from realtime.clients.commands import connection, subscription
from realtime.clients.rules import LISTENING
from realtime.clients.session import Subscription
from realtime.clients.subscriptions import Subscribing
from realtime.cluster.control import ServerSubscription
from realtime.errors import (
    Disconnect,
    DisconnectForced,
    DisconnectInsufficientState,
    Error,
    PermissionDenied,
    UnrecoverablePosition,
)
from realtime.node.hooks import Handshake
from realtime.protocol import event_ids
from realtime.protocol.messages import (
    SERVER_UNSUBSCRIBE,
    ChannelName,
    ConnectRequest,
    Publication,
    StreamPosition,
    SubscribeRequest,
    SubscribeResult,
    UnsubscribeReason,
)
from realtime.protocol.v2 import events
from realtime.protocol.v2.events import EventCodecs, Part, Positions
from realtime.streams import recovery

ID_BYTES = 8
"""Bytes of an ID, and of each of its entries, besides what they say."""

_WANTED = SubscribeRequest(recoverable=True)
"""What a listener asks for: positions, if it may have them."""


class Listener(Client):
    """One listener.

    It sends one request and gets events. Besides the events it knows two things: the response has
    ended, and the ID of the last event. So whatever it cannot go on with ends the response, and it
    comes back with the ID, which says from where it wants to continue; see `protocol.event_ids`.
    """

    __slots__ = ("_positions",)

    def __post_init__(self, opening: Handshake) -> None:
        super().__post_init__(opening)
        self.session.rules = LISTENING
        self._positions: Positions | None = None

    def follow(self, positions: Positions) -> None:
        """Add the ID to each event from now on: the codec leaves it out."""
        self._positions = positions
        self.push = self.notify = self._push_part

    def _push_part(self, message: bytes) -> None:
        if isinstance(message, Part):
            assert self._positions is not None
            moved = self._positions.move(message.channel, message.offset)
            self.outbox.append(message)
            self.outbox.append(self._positions.id_line() + b"\n" if moved else b"\n")
        else:
            self.outbox.append(message)

    async def subscribe(self, wanted: ServerSubscription) -> None:
        """Do nothing: a listener has the channels that it asked for."""

    async def unsubscribe(
        self, channel: ChannelName, why: UnsubscribeReason = SERVER_UNSUBSCRIBE
    ) -> None:
        """End a subscription and tell the listener; "" means each. After the last one it stays
        away."""
        session = self.session
        if channel and channel not in session.subscriptions and channel not in session.pending:
            return
        await super().unsubscribe(channel, why)
        self.close_if_done()

    def close_if_done(self) -> None:
        """Close the connection if no subscription is left, nor being made."""
        if not (self.session.subscriptions or self.session.pending):
            self.close(DisconnectForced())


class ListenRequest(Struct, frozen=True):
    """What a listener asks for."""

    channels: Mapping[ChannelName, str]
    """Channel → its subscription token, "" for none. At least one."""
    token: str = ""
    """A connection token; "" for none."""
    since: Mapping[ChannelName, StreamPosition] = {}
    """Where the listener wants to continue."""
    left: tuple[ChannelName, ...] = ()
    """More channels, which it asks for and the server has ended before."""
    is_named: bool = False
    """Whether events have the name of their channel: the listener asks for several."""
    is_lost: bool = False
    """Whether the listener sent an ID that cannot be read: all positions are lost."""
    is_text: bool = False
    """Whether payloads that are a JSON string go out as their text."""


class ChannelRefused(Exception):
    """The listener may not read a channel; or an error or disconnect says so."""

    def __init__(self, channel: ChannelName, why: Error | Disconnect) -> None:
        super().__init__(channel, why)
        self.channel = channel
        self.why = why


async def listen(
    listener: Listener,
    request: ListenRequest,
    codecs: EventCodecs,
    begin: Callable[[], Awaitable[None]],
) -> None:
    """Identify a listener, subscribe it, and send what it missed.

    Args:
        listener: has the codec of listeners with several channels.
        request: what it asks for.
        codecs: those of the process.
        begin: sends the head of the response.

    Raises:
        ChannelRefused: a channel is refused, before `begin`.
        Error, Disconnect: the listener is refused, before `begin`.
        EngineUnavailable, Disconnect: the listener cannot go on for now, after `begin`.
    """
    identity, revoked = await connection.identify(listener, ConnectRequest(token=request.token))
    if listener.is_closing():
        return
    granted = connection.server_side_subscriptions(listener, identity, ConnectRequest())
    connection.open_session(listener, identity)
    if not identity.visible:
        raise PermissionDenied  # the token of an observer
    listener.node.single_connection.begin(listener)
    async with AsyncExitStack() as stack:
        making: dict[ChannelName, Subscribing] = {}
        subscriptions: dict[ChannelName, Subscription] = {}
        asked: dict[ChannelName, Attempt] = {}
        for channel, token in request.channels.items():
            made = _checked(listener, channel, token, granted.get(channel), asked)
            subscriptions[channel] = made
            # no other task has a turn until all blocks have begun
            making[channel] = await stack.enter_async_context(
                Subscribing(listener.subscriptions, channel, made, request.since.get(channel))
            )
        for channel in revoked:
            listener.session.revoke(channel)
        for channel, attempt in asked.items():
            with _refused(channel):
                await subscription.decide(listener, attempt, subscriptions[channel])
        _grant(listener, subscriptions.values())
        if listener.is_closing():
            return
        await begin()
        try:
            entries = await _prepare(making)
            if listener.is_closing():
                return
            if not request.is_named:
                _share_codec(listener, request, subscriptions, codecs)
            connection.complete(listener, making, partial(_tell, listener, request, entries))
        except UnrecoverablePosition:  # a map changes while it is read
            raise DisconnectInsufficientState from None
    for subscribing in making.values():
        await subscribing.join()
    listener.close_if_done()
    await listener.node.single_connection.finish(listener)


def _grant(listener: Listener, subscriptions: Iterable[Subscription]) -> None:
    for made in subscriptions:
        listener.session.grant(made, _WANTED)
        made.hears_joins = False
        if made.options.map:
            made.follow_map()


Entries = Mapping[ChannelName, Sequence[Publication]]
"""Map → its entries, where the listener gets all of them."""


async def _prepare(making: Mapping[ChannelName, Subscribing]) -> Entries:
    entries: dict[ChannelName, Sequence[Publication]] = {}
    for channel, subscribing in making.items():
        await subscribing.prepare()
        if subscribing.subscription.options.map:
            found = await subscribing.read_map()
            if found is not None:
                entries[channel] = found
    return entries


def _checked(
    listener: Listener,
    channel: ChannelName,
    token: str,
    granted: Subscription | None,
    asked: dict[ChannelName, Attempt],
) -> Subscription:
    """Return the subscription to make. What must still be decided is added to `asked`."""
    with _refused(channel):
        if granted is not None:
            listener.session.check_subscribe(channel)
            return granted
        asked[channel] = subscription.check(listener, channel, token, _WANTED)
    return Subscription(asked[channel].options)


@contextmanager
def _refused(channel: ChannelName) -> Iterator[None]:
    """Name the channel whose check, token or hook refuses in this block."""
    try:
        yield
    except (Error, Disconnect) as why:
        # its traceback holds frames that hold the listener
        raise ChannelRefused(channel, why.with_traceback(None)) from None


def _share_codec(
    listener: Listener,
    request: ListenRequest,
    subscriptions: Mapping[ChannelName, Subscription],
    codecs: EventCodecs,
) -> None:
    """Give a listener with one channel the codec that knows the channel and its epoch."""
    for channel, made in subscriptions.items():
        top = listener.node.hub.feeds[channel].position if made.recoverable else None
        epoch = None if top is None else top.epoch
        listener.codec = codecs.of_channel(request.is_text, channel, epoch)


def _tell(
    listener: Listener,
    request: ListenRequest,
    entries: Entries,
    results: Mapping[ChannelName, SubscribeResult],
) -> None:
    """Send the ID from which the listener goes on, what it has lost, and what it missed.

    A map comes whole, behind the event that says it is lost. The map is not in the ID before its
    last entry: a listener that was cut off gets all of them again.

    Raises:
        UnrecoverablePosition: a map has too many bytes.
    """
    begins: dict[ChannelName, StreamPosition] = {}
    begins_of_maps: dict[ChannelName, StreamPosition] = {}
    lost: list[ChannelName] = list(request.channels) if request.is_lost else []
    whole: list[bytes] = []
    missed: list[bytes] = []
    id_size = _id_size(results) if request.is_named else 0
    for channel, result in results.items():
        top, since, begun = result.position, request.since.get(channel), begins
        state: list[bytes] | None = []
        if channel in entries:
            since, begun = None, begins_of_maps
            unplaced = tuple(replace(each, offset=0) for each in entries[channel])
            result = replace(result, recovered=True)
            all_of_it = replace(result, publications=unplaced)
            state = _recovered(listener, channel, all_of_it, id_size, is_reserved=False)
        recovered = _recovered(listener, channel, result, id_size)
        if channel in entries:
            if state is None or recovered is None:
                raise UnrecoverablePosition
            whole += state
        if channel in entries or (since is not None and recovered is None):
            lost.append(channel)
        if result.recoverable and top is not None:
            first = top.offset
            if recovered:  # joined ones have the offset of their last
                first = since.offset if since else result.publications[0].offset - 1
            begun[channel] = StreamPosition(first, top.epoch)
        missed += recovered or ()
    positions = Positions(begins)
    positions.leave(request.left)
    if line := positions.id_line():
        listener.outbox.append(line + (b"" if lost else b"\n"))
    if lost:
        listener.outbox.append(events.event(events.RESET, {"channels": lost}))
    if request.is_named:
        listener.follow(positions)
    for message in whole:
        listener.push(message)
    if begins_of_maps:
        positions.begin(begins_of_maps)
        listener.outbox.append(positions.id_line() + b"\n")
    for message in missed:
        listener.push(message)


def _id_size(results: Mapping[ChannelName, SubscribeResult]) -> int:
    """Return about how many bytes an ID adds to an event, rather too many than too few."""
    return ID_BYTES + sum(
        ID_BYTES + len(event_ids.entry(channel, result.position))
        for channel, result in results.items()
    )


def _recovered(
    listener: Listener,
    channel: ChannelName,
    result: SubscribeResult,
    id_size: int,
    *,
    is_reserved: bool = True,
) -> list[bytes] | None:
    """Return the events that a listener missed in a channel; None if it has lost some of them.

    Recovery has reserved room for the publications, and events may be larger: they have IDs, and
    each line of a text begins with a word. Where there is no room for that, they are lost: were
    they sent, the listener could be slow at every return.
    """
    if not result.recovered:
        return None
    messages = [listener.codec.publication(channel, each) for each in result.publications]
    size = sum(map(len, messages)) + id_size * len(messages)
    more = size - recovery.size_of(result.publications) if is_reserved else size
    most = listener.node.config.client_recovery_max_size
    if more > 0 and not listener.outbox.reserve(more, most):
        return None
    return messages
