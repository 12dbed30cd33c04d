"""The contract of maps, an optional part of an engine: the newest value of each key.

A map is a channel whose options have `map`. Each publication in it is a change of one key: a put,
or the removal of the key. The engine makes a change with `Streams.publish`, like any other
publication, and changes the entries in the same atomic step. The entries are therefore the result
of the stream: a client that reads entries at a position, and follows the stream from there on, has
the whole map.

    put, removal ──► asked: once, expect, version, key_mode, bounds ──► entry, stream and sending
                                     └──► refused: nothing is kept or sent, with the reason

Two kinds of maps have a stream (`recoverable`, `persistent`); in an `ephemeral` one positions are
None, and its changes are sent without being kept as history.

An entry with a lifetime stays until a node removes it: `due` names it, and the node publishes its
removal with the mode `if_expired`. So an expiry is a change as any other, once for all nodes. For
`if_new` and `if_exists` an entry whose lifetime is over does not exist.

What callers and implementations can rely on is in `base`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from realtime.errors import BadRequest, EngineUnavailable
from realtime.payload import is_text
from realtime.protocol.messages import ChannelName, Publication, StreamPosition

MAX_KEY_BYTES = 255
"""Bytes of a key in UTF-8, at least 1."""

MAX_TTL = 2**31 - 1
"""Seconds."""

KeyMode: TypeAlias = Literal["", "if_new", "if_exists", "if_expired", "renew"]
"""Which entries a change may meet: any or none, none, one, one whose lifetime is over. `renew` is
as `if_new`, but an entry that lives gets the lifetime of the put that it refuses."""

Refusal: TypeAlias = Literal[
    "", "idempotency", "position_mismatch", "version", "key_exists", "key_not_found", "full"
]
"""Why a change was not made; asked in this order. "": it was made, or was no change of a map."""


def check_key(key: str) -> None:
    """Check the key of a change.

    Raises:
        BadRequest: it is empty, longer than `MAX_KEY_BYTES`, holds a null character, or is no text.
    """
    if not key or "\0" in key or not is_text(key) or len(key.encode()) > MAX_KEY_BYTES:
        raise BadRequest


def entry_size(publication: Publication) -> int:
    """Return the bytes of key and data, which count for `map_max_bytes`."""
    return len(publication.key.encode()) + len(publication.data.json)


class Page(NamedTuple):
    """Entries of a map, read at one moment.

    entries: the newest put of each key, as a publication with key, offset and time; by key, in the
        order of its bytes in UTF-8.
    cursor: where the next page begins: the last key of this one; "" after the last page.
    position: the top of the stream at that moment, as `Streams.positions` returns it. Callers drop
        the position of an ephemeral map, which has no stream.
    size: keys in the map.
    """

    entries: tuple[Publication, ...]
    cursor: str
    position: StreamPosition
    size: int


class Maps(Protocol):
    """Reads the maps of an engine."""

    async def page(self, channel: ChannelName, cursor: str = "", limit: int = 100) -> Page:
        """Read up to `limit` entries whose keys are greater than `cursor`.

        Args:
            channel: the name of a map.
            cursor: any text.
            limit: 0 or more; 0: none, for the size and the position.
        """

    async def get(self, channel: ChannelName, key: str) -> Page:
        """Read the entry of one key, as a page of one entry, or none; its cursor is ""."""

    async def due(self, limit: int) -> Sequence[tuple[ChannelName, str] | EngineUnavailable]:
        """Return up to `limit` keys whose lifetime is over, with their channels; oldest first.

        Every node asks each second. An entry is named until it is removed. Where a part of the
        engine did not answer, the last one is the reason.
        """
