"""Lanes: the live subscribers of a feed, in groups that get the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from realtime.node.subscriber import Subscriber
from realtime.protocol.codec import Codec
from realtime.protocol.messages import ChannelName, Publication
from realtime.streams.tag_filters import TagsFilter


class FilteredGroup(NamedTuple):
    """What the subscribers of a group have in common, if they have a filter."""

    codec: Codec
    tags_filter: TagsFilter


Group: TypeAlias = Codec | FilteredGroup
"""What the subscribers of a group have in common."""

Lane: TypeAlias = dict[Group, dict[Subscriber, None]]
"""Live subscribers that get publications in the same way, by group."""


Groups: TypeAlias = Iterable[tuple[Any, dict[Subscriber, None]]]
"""Codecs, each with the subscribers that get what it encodes."""

Encode: TypeAlias = Callable[[Codec, ChannelName, Publication], bytes]


def matching(lane: Lane, publication: Publication) -> Groups:
    """Yield the groups of a lane that get a publication."""
    for group, clients in lane.items():
        if not isinstance(group, FilteredGroup):
            yield group, clients
        elif group.tags_filter.matches(publication.tags):
            yield group.codec, clients


def discard(lane: Lane, group: Group, client: Subscriber) -> None:
    """Remove a subscriber from its group; unknown ones are ignored."""
    clients = lane.get(group)
    if clients is not None and client in clients:
        del clients[client]
        if not clients:
            del lane[group]


def encoded(codec: Codec, channel: ChannelName, publication: Publication) -> bytes:
    """Return the message of a publication."""
    return codec.publication(channel, publication)


class EncodeOnce:
    """As `encoded`, for a feed with two lanes: what comes for the second lane a moment later is the
    same object."""

    __slots__ = ("_messages", "_publication")

    def __init__(self) -> None:
        self._publication: Publication | None = None
        self._messages: dict[Codec, bytes] = {}

    def __call__(self, codec: Codec, channel: ChannelName, publication: Publication) -> bytes:
        if self._publication is not publication:
            self._publication = publication
            self._messages.clear()
        message = self._messages.get(codec)
        if message is None:
            message = self._messages[codec] = codec.publication(channel, publication)
        return message
