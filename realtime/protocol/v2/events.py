"""Publications as server-sent events, for listeners that need no library.

    id: KEY.17.EPOCH                the positions of the listener after this event
    event: news                     the channel, if the listener has several
    data: {"title":"Hello"}         the payload; a text may stand as it is, in several lines

The ID of a listener with one channel is the same for all that listen to the channel, so the whole
event is encoded once for all of them: their codec knows the channel and its epoch. With several
channels each listener has another ID; its codec makes the part that all of them share, and the
listener adds the ID.

docs/protocol.md, 17.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from weakref import WeakValueDictionary

import msgspec

from realtime import payload
from realtime.errors import Disconnect
from realtime.payload import Payload, escape
from realtime.protocol import event_ids
from realtime.protocol.json_shapes import without_key
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.protocol.v2 import codes
from realtime.protocol.v2.json import UnidirectionalJSONCodec

RESET = "reset"
"""The event that names channels in which the listener has missed publications for good."""
UNSUBSCRIBE = "unsubscribe"
DISCONNECT = "disconnect"
"""The last event of a listener that must not come back."""

RESERVED = frozenset((RESET, UNSUBSCRIBE, DISCONNECT, "message", "open", "error"))
"""Names of events that are no channel: those of the service, and those of browsers."""

RETRY = 1.0, 3.0
"""Seconds that a listener waits before it comes back: at least and at most, by chance."""
RETRY_LATER = 0.5, 5.0
"""As `RETRY`, when the service ends the response: all listeners of a node come back then."""

_LINE_END = re.compile("\r\n|\r|\n")
_encode = msgspec.json.Encoder().encode


class Part(bytes):
    """The part of an event that all listeners of several channels share: the ID is missing."""

    channel: ChannelName
    offset: int | None
    """That of the publication; 0 for none. None: the subscription has ended."""


class EventCodec(UnidirectionalJSONCodec):
    """What all listeners share. A listener sends nothing, and gets neither joins nor leaves."""

    separator = b""

    def __init__(self, is_text: bool) -> None:
        """`is_text`: payloads that are a JSON string go out as their text."""
        super().__init__()
        self._data_of = _text_or_json if is_text else _json

    def ping(self) -> bytes:
        return b":\n\n"

    def refreshed(self, expires: bool, ttl: int) -> bytes:
        return b""

    def disconnect(self, disconnect: Disconnect) -> bytes:
        """Encode what ends the response: the listener waits and comes back, or stays away."""
        if disconnect.reconnect:
            return retry(*RETRY_LATER)
        code, reason = codes.closing(disconnect)
        what = event(DISCONNECT, {"code": code, "reason": reason})
        return b"%b%b" % (id_line(event_ids.END), what)


class ChannelEvents(EventCodec):
    """The events of listeners that have one channel, at one epoch of its stream."""

    def __init__(self, is_text: bool, channel: ChannelName, epoch: str | None) -> None:
        """`epoch`: None if the listeners cannot recover: their events have no ID."""
        super().__init__(is_text)
        self._left = id_line(event_ids.entry(channel, None))
        self._has_id = epoch is not None
        before, _, after = event_ids.entry(channel, StreamPosition(0, epoch or "")).partition(".0.")
        self._before, self._after = f"id: {before}.".encode(), f".{after}\n".encode()

    def publication(self, channel: ChannelName, publication: Publication) -> bytes:
        if publication.key:
            publication = without_key(publication)
        data = self._data_of(publication.data)
        if not (self._has_id and publication.offset):
            return b"%b\n" % data
        return b"%b%d%b%b\n" % (self._before, publication.offset, self._after, data)

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> bytes:
        return self._left + _unsubscribe(channel, code, reason)


class SharedEvents(EventCodec):
    """The events of listeners that have several channels, without their IDs."""

    def publication(self, channel: ChannelName, publication: Publication) -> Part:
        if publication.key:
            publication = without_key(publication)
        data = self._data_of(publication.data)
        return _part(b"event: %b\n%b" % (channel.encode(), data), channel, publication.offset)

    def unsubscribe(self, channel: ChannelName, code: int, reason: str) -> Part:
        text = _unsubscribe(channel, code, reason)
        return _part(text.removesuffix(b"\n"), channel, None)


class EventCodecs:
    """The codecs of the listeners of a process: all with the same events share one object."""

    def __init__(self) -> None:
        self._shared = {is_text: SharedEvents(is_text) for is_text in (False, True)}
        self._of_channels: WeakValueDictionary[
            tuple[bool, ChannelName, str | None], ChannelEvents
        ] = WeakValueDictionary()

    def shared(self, is_text: bool) -> SharedEvents:
        """Return the codec of listeners with several channels."""
        return self._shared[is_text]

    def of_channel(self, is_text: bool, channel: ChannelName, epoch: str | None) -> ChannelEvents:
        """Return the codec of listeners with one channel; see `ChannelEvents`."""
        key = is_text, channel, epoch
        codec = self._of_channels.get(key)
        if codec is None:
            codec = self._of_channels[key] = ChannelEvents(*key)
        return codec


class Positions:
    """How far one listener has come in all its channels."""

    __slots__ = ("_entries", "_epochs")

    def __init__(self, positions: Mapping[ChannelName, StreamPosition]) -> None:
        """`positions`: where the listener begins, in the channels that it can recover."""
        self._epochs: dict[ChannelName, str] = {}
        self._entries: dict[ChannelName, str] = {}
        self.begin(positions)

    def begin(self, positions: Mapping[ChannelName, StreamPosition]) -> None:
        """Add channels, and where the listener begins in them."""
        for channel, position in positions.items():
            self._epochs[channel] = position.epoch
            self._entries[channel] = event_ids.entry(channel, position)

    def move(self, channel: ChannelName, offset: int | None) -> bool:
        """Note that the listener has an event of a channel.

        Args:
            channel: its name.
            offset: see `Part.offset`.

        Returns:
            Whether this changes the ID.
        """
        if offset is None:
            self._entries[channel] = event_ids.entry(channel, None)
            return True
        if not offset or channel not in self._epochs:
            return False
        position = StreamPosition(offset, self._epochs[channel])
        self._entries[channel] = event_ids.entry(channel, position)
        return True

    def leave(self, channels: Iterable[ChannelName]) -> None:
        """Note channels that the listener left before, so that it does not come back to them."""
        for channel in channels:
            self.move(channel, None)

    def id_line(self) -> bytes:
        """Return the line with the ID; none if there is nothing to remember."""
        return id_line(event_ids.join(self._entries.values())) if self._entries else b""


def id_line(event_id: str) -> bytes:
    """Return the line of an event that holds its ID."""
    return b"id: %b\n" % event_id.encode()


def event(name: str, data: object) -> bytes:
    """Return an event of the service, without an ID."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), escape(_encode(data)))


def text_lines(text: str) -> bytes:
    """Return the lines of an event that hold a text."""
    lines = _LINE_END.split(text)
    return b"".join(b"data: %b\n" % line.encode(errors="replace") for line in lines)


def retry(least: float, most: float) -> bytes:
    """Return what makes a listener wait before it comes back.

    Args:
        least: seconds, at least.
        most: seconds, at most. Chance decides, so that many listeners do not come at once.
    """
    milliseconds = 1000 * random.uniform(least, most)
    return b"retry: %d\n\n" % milliseconds


def _unsubscribe(channel: ChannelName, code: int, reason: str) -> bytes:
    return event(UNSUBSCRIBE, {"channel": channel, "code": code, "reason": reason})


def _part(text: bytes, channel: ChannelName, offset: int | None) -> Part:
    part = Part(text)
    part.channel, part.offset = channel, offset
    return part


def _json(data: Payload) -> bytes:
    return b"data: %b\n" % data.json  # compact: in one line


def _text_or_json(data: Payload) -> bytes:
    if not data.json.startswith(b'"'):
        return _json(data)
    text: str = payload.value(data.json)
    return text_lines(text)
