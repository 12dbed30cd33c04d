"""A subscriber that is the site's own code, in a process that serves.

    begin ──► held ──► missed publications ──► live ──┬──► lost: begins again from its position
                │                                     ├──► behind: ends with `PublicationsLost`
                └── history has a gap: `PublicationsLost`         └──► closed: the node stops

It is not counted among the subscribers of its channel, not present, and hears no joins.
"""

from __future__ import annotations

import asyncio
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


class _NoCodec:
    """The codec of readers: a publication stands where subscribers get bytes."""

    def publication(self, channel: ChannelName, publication: Publication) -> Publication:
        return publication


class ChannelReader:
    """See the module. Belongs to the event loop of its node; `Subscriber` is what the node sees."""

    id = ""
    codec = cast(Codec, _NoCodec())

    def __init__(self, node: Node, channel: ChannelName) -> None:
        """
        Raises:
            NamespaceNotFound, BadRequest: there is no such channel.
        """
        self._node = node
        self._channel = channel
        self._options = check_channel(channel, node.config)
        self._most = node.config.client_queue_max_size
        self._waiting: asyncio.Queue[Publication | None] = asyncio.Queue()
        """Publications; None: the position was lost, or the node stops."""
        self._waiting_bytes = 0
        self._is_behind = False
        self.is_over = False
        """Whether the node stops."""

    # what the node does

    def has_position(self, channel: ChannelName) -> bool:
        return self._options.keeps_history

    def push(self, message: bytes) -> None:
        if self.is_closing():
            return
        publication = cast(Publication, cast(object, message))
        self._waiting_bytes += len(publication.data.raw)
        self._is_behind = 0 < self._most < self._waiting_bytes
        self._waiting.put_nowait(publication)

    def lose_position(self, channel: ChannelName) -> None:
        self._waiting.put_nowait(None)

    def close(self, disconnect: Disconnect | None) -> None:
        self.is_over = True
        self._waiting.put_nowait(None)

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
        self._waiting, self._waiting_bytes = asyncio.Queue(), 0
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
        if self._is_behind:
            raise PublicationsLost(f"a reader of {self._channel!r} is slower than its publications")
        publication = await self._waiting.get()
        if publication is not None:
            self._waiting_bytes -= len(publication.data.raw)
        return publication

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
