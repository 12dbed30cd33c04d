"""A subscriber that is the site's own code, in a process that serves.

    begin ──► held ──► missed publications ──► live ──┬──► lost: begins again from its position
                │                                     ├──► behind: ends with `PublicationsLost`
                └── history has a gap: `PublicationsLost`         └──► closed: the node stops

It is not counted among the subscribers of its channel, not present, and hears no joins.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from realtime.channel_rules import check_channel
from realtime.errors import Disconnect, EngineUnavailable, NotAvailable
from realtime.node.node import Node
from realtime.node.subscriber import Subscriber
from realtime.protocol.codec import Codec
from realtime.protocol.messages import ChannelName, ClientInfo, Publication, StreamPosition
from realtime.streams import joining, recovery

_NOBODY = ClientInfo(user="", client="")


class PublicationsLost(Exception):
    """A reader missed publications for good: it reads anew what they change."""


class _Carried(bytes):
    """A publication where subscribers get bytes."""

    publication: Publication


class _Carrier:
    """The codec of readers: nothing is encoded."""

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        carried = _Carried()
        carried.publication = publication
        return carried


_CODEC = cast(Codec, _Carrier())


class ChannelReader:
    """See the module. Belongs to the event loop of its node; `Subscriber` is what the node sees."""

    id = ""
    codec = _CODEC

    def __init__(self, node: Node, channel: ChannelName) -> None:
        """
        Raises:
            NamespaceNotFound, BadRequest: there is no such channel.
        """
        self._node = node
        self._channel = channel
        self._options = check_channel(channel, node.config)
        self._most = node.config.client_queue_max_size
        self._waiting: deque[Publication] = deque()
        self._waiting_bytes = 0
        self._something = asyncio.Event()
        self._is_lost = False
        self._is_behind = False
        self.is_over = False
        """Whether the node stops."""

    # what the node does

    def has_position(self, channel: ChannelName) -> bool:
        return self._options.keeps_history

    def push(self, message: bytes) -> None:
        publication = cast(_Carried, message).publication
        self._waiting.append(publication)
        self._waiting_bytes += len(publication.data.raw)
        if 0 < self._most < self._waiting_bytes:
            self._is_behind = True
            self._waiting.clear()
        self._something.set()

    def lose_position(self, channel: ChannelName) -> None:
        self._is_lost = True
        self._something.set()

    def close(self, disconnect: Disconnect | None) -> None:
        self.is_over = True
        self._something.set()

    def is_closing(self) -> bool:
        return self.is_over or self._is_behind

    # what the reader does

    async def begin(
        self, since: StreamPosition | None
    ) -> tuple[Sequence[Publication], StreamPosition | None]:
        """Begin to listen. Return what was missed since a position, and the one that it reached.

        Raises:
            NotAvailable: a position in a channel without history.
            PublicationsLost: history lacks some of what was missed.
            EngineUnavailable: the engine is away.
        """
        if since is not None and not self._options.keeps_history:
            raise NotAvailable
        node, channel, subscriber = self._node, self._channel, cast(Subscriber, self)
        self._waiting.clear()
        self._waiting_bytes, self._is_lost = 0, False
        node.opened(self)
        await node.subscriptions.add(
            channel, subscriber, self._options, _NOBODY, visible=False, hears_joins=False
        )
        feed = node.hub.feeds[channel]
        missed: Sequence[Publication] = ()
        if since is not None:
            found = await node.subscriptions.catch_up(channel, since, empty_epoch_matches=True)
            merged = recovery.merge(found, feed.held(subscriber))
            if merged is None or merged.position != feed.position:
                raise EngineUnavailable("the stream went on while it was read")
            if not merged.recovered:
                raise PublicationsLost(f"history of {channel!r} begins after {since.offset}")
            join = joining.join if self._options.join_on_read else tuple
            missed = join(merged.publications)
        elif not self._options.keeps_history:
            missed = tuple(feed.held(subscriber))
        feed.release(subscriber)
        return missed, feed.position if self._options.keeps_history else None

    async def next(self) -> Publication | None:
        """Return the next publication; None if the position was lost, or the node stops.

        Raises:
            PublicationsLost: more waits than `client_queue_max_size` allows.
        """
        while True:
            if self._is_behind:
                raise PublicationsLost(
                    f"a reader of {self._channel!r} is slower than its publications"
                )
            if self._waiting:
                publication = self._waiting.popleft()
                self._waiting_bytes -= len(publication.data.raw)
                return publication
            if self._is_lost or self.is_over:
                return None
            self._something.clear()
            await self._something.wait()

    def end(self) -> None:
        """Begin to leave the channel. Returns at once."""
        self.is_over = True
        self._node.spawn(self.leave())

    async def leave(self) -> None:
        """Leave the channel."""
        self._node.closed(self)
        with suppress(EngineUnavailable):  # at this node it has left
            await self._node.subscriptions.remove(
                self._channel, cast(Subscriber, self), self._options, leave=None, visible=False
            )
