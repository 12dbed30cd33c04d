"""`listen`: the publications of a channel for the site's own code, in a process that serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec

from realtime.channel_rules import name
from realtime.errors import NotServing
from realtime.node.reader import ChannelReader
from realtime.protocol.messages import Publication, StreamPosition
from realtime.server_api.arguments import Position, stream_position
from realtime.serving import serving


class Heard(NamedTuple):
    """A publication. Without history, its offset is 0 and its epoch "". `key` and `removed`: of a
    change of a map."""

    data: Any
    offset: int
    epoch: str
    tags: dict[str, str]
    user: str
    """The user ID of the client that published it; "" for the site and anonymous clients."""
    key: str = ""
    removed: bool = False


async def listen(channel: str, since: Position | int | None = None) -> AsyncGenerator[Heard]:
    """Iterate over the publications of a channel: first what was missed, then as they come.

    No hook is asked: this is the site's own code. It holds no thread and no database connection.
    End the iteration with `aclosing`, or by cancelling its task.

    Args:
        channel: the name of the channel.
        since: a position, or an offset in whatever epoch: begin after it, without a gap; 0: with
            the oldest publication there was. None: from now on.

    Yields:
        Each publication once, in order; joined where the channel has `join_on_read`.

    Raises:
        PublicationsLost: history lacks some publications since the position, or the reader is
            slower than they come. Read the state that they change anew, and begin at its position.
        NotAvailable: code 108, `since` in a channel without history.
        NotServing: this event loop serves no clients, or stops to.
        EngineUnavailable: the engine is away; begin again at the position of the last publication.
        NamespaceNotFound, BadRequest: there is no such channel.
    """
    node = serving.node()
    if node is None:
        raise NotServing("listen works where clients are served: on the event loop of the server")
    position = stream_position(since)
    reader = ChannelReader(node, name(channel))
    try:
        while not reader.is_over:
            missed, top = await reader.begin(position)
            epoch = "" if top is None else top.epoch
            position = top if position is None else position
            for publication in missed:
                position = _after(publication, epoch)
                yield _heard(publication, epoch)
            while (live := await reader.next()) is not None:
                position = _after(live, epoch) or position
                yield _heard(live, epoch)
            if not reader.is_over:
                await reader.leave()  # the position was lost: from where it was
        raise NotServing("this process stops")
    finally:
        reader.end()


def _after(publication: Publication, epoch: str) -> StreamPosition | None:
    return StreamPosition(publication.offset, epoch) if publication.offset else None


def _heard(publication: Publication, epoch: str) -> Heard:
    return Heard(
        msgspec.json.decode(publication.data.json),
        publication.offset,
        epoch,
        dict(publication.tags or {}),
        publication.info.user if publication.info else "",
        publication.key,
        publication.removed,
    )
