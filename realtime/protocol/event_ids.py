"""Event IDs: the positions of a listener in all its channels, as one short text.

    ID      entry ~ entry ~ ...  | "end"
    entry   key . offset . epoch      the listener has everything up to this position
            key                       the server has ended the subscription to the channel

A key stands for the name of a channel, and always has 8 characters: names may have 255, and an ID
is part of every event, of a header and of addresses. 64 channels take about 2.5 KB. All characters
may stand in an address as they are.

IDs come back from browsers, and attackers can invent them. Whatever an ID says, a listener gets no
channel that it may not read, so IDs carry no signature.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from realtime.protocol.messages import UINT64_MAX, ChannelName, StreamPosition

END = "end"
"""The ID after which a listener must not come back."""

MAX_LENGTH = 8192
"""Characters of an ID that is read at all."""

_KEY_BYTES = 6
_SEPARATOR = "~"
_ENTRY = re.compile(r"([A-Za-z0-9_-]{8})(?:\.([0-9]{1,20})\.([A-Za-z0-9-]{0,64}))?")


def encode(positions: Mapping[ChannelName, StreamPosition | None]) -> str:
    """Return the ID of a listener.

    Args:
        positions: channel → how far the listener has read its stream; None: it has left the
            channel. Channels that cannot be recovered are not among them.
    """
    return _SEPARATOR.join(entry(channel, position) for channel, position in positions.items())


def entry(channel: ChannelName, position: StreamPosition | None) -> str:
    """Return what stands for one channel in an ID."""
    key = key_of(channel)
    return key if position is None else f"{key}.{position.offset}.{position.epoch}"


def join(entries: Iterable[str]) -> str:
    """Return the ID with these entries."""
    return _SEPARATOR.join(entries)


def key_of(channel: ChannelName) -> str:
    """Return the key of a channel: 48 bits of a hash of its name."""
    digest = blake2b(channel.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
    return urlsafe_b64encode(digest).decode()


def decode(text: str, channels: Iterable[ChannelName]) -> dict[ChannelName, StreamPosition | None]:
    """Return what an ID says about channels, as `encode` takes it.

    Args:
        text: whatever the listener sent.
        channels: the channels that it asks for now. Entries of others are left out, and so are
            channels of which the ID says nothing.

    Raises:
        ValueError: the text is no ID.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError("an ID is too long")
    known: dict[str, StreamPosition | None] = {}
    for part in text.split(_SEPARATOR):
        match = _ENTRY.fullmatch(part)
        if match is None:
            raise ValueError("not an ID")
        key, offset, epoch = match.groups()
        if offset is None:
            known[key] = None
        elif (number := int(offset)) <= UINT64_MAX:
            known[key] = StreamPosition(number, epoch)
        else:
            raise ValueError("not an ID")
    keys = {channel: key_of(channel) for channel in channels}
    return {channel: known[key] for channel, key in keys.items() if key in known}
