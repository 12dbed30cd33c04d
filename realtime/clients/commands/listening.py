"""Listening: what stands for connect and subscribe where an address names the channels.

    identified ──► every channel permitted ──► begin: the head leaves ──► missed events ──► live
        │                    │                                │
        └── refused ◄────────┘                                └── fails: ends, the listener returns

A listener may read all the channels that it asks for, or it is refused before anything is sent.
What has to wait for the engine comes after the head.

docs/protocol.md, 17.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager

from msgspec import Struct

from realtime.clients import server_side
from realtime.clients.checking import Attempt
from realtime.clients.commands import connection, subscription
from realtime.clients.listener import Listener
from realtime.clients.session import Subscription
from realtime.clients.subscribing import Subscribing, grant
from realtime.errors import Disconnect, Error, PermissionDenied
from realtime.protocol import event_ids
from realtime.protocol.messages import (
    ChannelName,
    ConnectRequest,
    StreamPosition,
    SubscribeRequest,
    SubscribeResult,
)
from realtime.protocol.v2 import events
from realtime.protocol.v2.events import EventCodecs, Positions
from realtime.streams import recovery

ID_BYTES = 8
"""Bytes of an ID, and of each of its entries, besides what they say."""

_WANTED = SubscribeRequest(recoverable=True)
"""What a listener asks for: positions, if it may have them."""


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


class Refused(Exception):
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
        Refused: a channel is refused, before `begin`.
        Error, Disconnect: the listener is refused, before `begin`.
        EngineUnavailable, Disconnect: the listener cannot go on for now, after `begin`.
    """
    node = listener.node
    identity, revoked = await connection.identify(listener, ConnectRequest(token=request.token))
    if listener.is_closing():
        return
    granted = connection.server_side_subscriptions(listener, identity, ConnectRequest())
    connection.open_session(listener, identity)
    if not identity.visible:
        raise PermissionDenied  # the token of an observer
    node.single_connection.begin(listener)
    async with AsyncExitStack() as stack:
        making: dict[ChannelName, Subscribing] = {}
        subscriptions: dict[ChannelName, Subscription] = {}
        asked: dict[ChannelName, Attempt] = {}
        for channel, token in request.channels.items():
            with _refused(channel):
                made = granted.get(channel)
                if made is None:
                    asked[channel] = subscription.check(listener, channel, token, _WANTED)
                    made = Subscription(asked[channel].options)
                else:
                    listener.session.check_subscribe(channel)
            subscriptions[channel] = made
            # no other task has a turn until all blocks have begun
            making[channel] = await stack.enter_async_context(
                Subscribing(listener, channel, made, request.since.get(channel))
            )
        for channel in revoked:
            listener.session.revoke(channel)
        for channel, attempt in asked.items():
            with _refused(channel):
                await subscription.decide(listener, attempt, subscriptions[channel])
        for made in subscriptions.values():
            grant(listener, made, _WANTED)
            made.hears_joins = False
        if listener.is_closing():
            return
        await begin()
        for subscribing in making.values():
            await subscribing.prepare()
        if listener.is_closing():
            return
        if not request.is_named:
            _share_codec(listener, request, subscriptions, codecs)
        results = {channel: subscribing.complete() for channel, subscribing in making.items()}
        _tell(listener, request, results)
        for subscribing in making.values():
            subscribing.push_kept()
        server_side.connected(listener)
        listener.set_timer()
        if listener.is_pinged:
            listener.start_pings()
    for subscribing in making.values():
        await subscribing.join()
    listener.close_if_done()
    await node.single_connection.finish(listener)


@contextmanager
def _refused(channel: ChannelName) -> Iterator[None]:
    """Name the channel whose check, token or hook refuses in this block."""
    try:
        yield
    except (Error, Disconnect) as why:
        # its traceback holds frames that hold the listener
        raise Refused(channel, why.with_traceback(None)) from None


def _share_codec(
    listener: Listener,
    request: ListenRequest,
    subscriptions: Mapping[ChannelName, Subscription],
    codecs: EventCodecs,
) -> None:
    """Give a listener with one channel the codec that knows the channel and its epoch."""
    for channel, made in subscriptions.items():
        top = listener.node.subscriptions.position(channel) if made.recoverable else None
        epoch = None if top is None else top.epoch
        listener.codec = codecs.of_channel(request.is_text, channel, epoch)


def _tell(
    listener: Listener,
    request: ListenRequest,
    results: Mapping[ChannelName, SubscribeResult],
) -> None:
    """Send the ID from which the listener goes on, what it has lost, and what it missed."""
    begins: dict[ChannelName, StreamPosition] = {}
    lost: list[ChannelName] = list(request.channels) if request.is_lost else []
    missed: list[bytes] = []
    id_size = _id_size(results) if request.is_named else 0
    for channel, result in results.items():
        top = result.position
        recovered = _recovered(listener, channel, result, id_size)
        if channel in request.since and recovered is None:
            lost.append(channel)
        if result.recoverable and top is not None:
            first = result.publications[0].offset - 1 if recovered else top.offset
            begins[channel] = StreamPosition(first, top.epoch)
        missed += recovered or ()
    positions = Positions(begins)
    positions.leave(request.left)
    if line := positions.id_line():
        listener.outbox.append(line + (b"" if lost else b"\n"))
    if lost:
        listener.outbox.append(events.event(events.RESET, {"channels": lost}))
    if request.is_named:
        listener.follow(positions)
    for message in missed:
        listener.push(message)


def _id_size(results: Mapping[ChannelName, SubscribeResult]) -> int:
    """Return about how many bytes an ID adds to an event, rather too many than too few."""
    return ID_BYTES + sum(
        ID_BYTES + len(event_ids.entry(channel, result.position))
        for channel, result in results.items()
    )


def _recovered(
    listener: Listener, channel: ChannelName, result: SubscribeResult, id_size: int
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
    more = size - recovery.size_of(result.publications)
    most = listener.node.config.client_recovery_max_size
    if more > 0 and not listener.outbox.reserve(more, most):
        return None
    return messages
