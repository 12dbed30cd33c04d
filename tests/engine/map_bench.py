"""Changes and readings of maps, for the tests of their contract."""

from __future__ import annotations

from typing import Any

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing, Published
from realtime.engine.maps import Page
from realtime.protocol.messages import Publication
from tests.engine.bench import Bench
from tests.unit.parts import data

TTL = 60
EPHEMERAL = ChannelOptions(map="ephemeral", map_key_ttl=TTL)
RECOVERABLE = ChannelOptions(map="recoverable", map_key_ttl=TTL)
PERSISTENT = ChannelOptions(map="persistent")
KINDS_OF_MAPS = (EPHEMERAL, RECOVERABLE, PERSISTENT)
NULL = data("null")


def change(
    channel: str,
    key: str,
    value: object = None,
    options: ChannelOptions = RECOVERABLE,
    **how: Any,
) -> Outgoing:
    """A put of a value, which is JSON text; without one, the removal of the key."""
    removed = value is None
    content = NULL if removed else data(str(value))
    publication = Publication(content, uid=f"{key[:8]}={value}", key=key, removed=removed)
    return Outgoing(channel, publication, options, **how)


async def make(bench: Bench, *arguments: Any, **how: Any) -> Published:
    """Make a change; the arguments are those of `change`."""
    return await bench.broker.publish(change(*arguments, **how))


async def pages(bench: Bench, channel: str, limit: int = 100) -> list[Page]:
    """Read all pages of a map."""
    found = [await bench.maps.page(channel, limit=limit)]
    while found[-1].cursor:
        found.append(await bench.maps.page(channel, found[-1].cursor, limit))
    return found


async def entries(bench: Bench, channel: str) -> dict[str, str]:
    """The keys of a map with the text of their values, in the order of the pages."""
    return as_texts(p for page in await pages(bench, channel) for p in page.entries)


def as_texts(publications: Any) -> dict[str, str]:
    """What is left of changes, in the order in which keys came."""
    left: dict[str, str] = {}
    for publication in publications:
        if publication.removed:
            left.pop(publication.key, None)
        else:
            left[publication.key] = publication.data.raw.decode()
    return left
