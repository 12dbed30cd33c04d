"""History as clients and the server API ask for it: a number of publications around a position.

docs/protocol.md, 3.12 and 6.4.
"""

from __future__ import annotations

from realtime.engine.base import Streams
from realtime.errors import BadRequest, UnrecoverablePosition
from realtime.protocol.messages import ChannelName, HistoryResult, StreamPosition
from realtime.streams import joining


async def read(
    streams: Streams,
    channel: ChannelName,
    *,
    limit: int | None = None,
    since: StreamPosition | None = None,
    reverse: bool = False,
    joins: bool = False,
) -> HistoryResult:
    """Read the history of a channel, and its top position at that moment.

    Args:
        streams: have the stream.
        channel: the name of the channel.
        limit: publications to read at most; None or less than 0: all, 0: none.
        since: publications after this position, in reverse those before it; None: from the oldest
            one on, in reverse from the newest one on. With the epoch "" it is of any epoch.
        reverse: the newest publication comes first.
        joins: join publications that were read, as the option `join_on_read` says.

    Raises:
        UnrecoverablePosition: `since` is of another epoch.
        BadRequest: nothing can be before `since`.
        EngineUnavailable: The engine did not answer, or refused.
    """
    start = None
    if since is not None:
        if reverse and since.offset == 0:
            raise BadRequest
        start = since.offset - 1 if reverse else since.offset + 1
    if limit is not None and limit < 0:
        limit = None
    history = await streams.history(channel, start, limit, reverse=reverse)
    if since is not None and since.epoch not in ("", history.position.epoch):
        raise UnrecoverablePosition
    publications = history.publications
    if joins:
        oldest_first = publications[::-1] if reverse else publications
        publications = joining.join(oldest_first)[:: -1 if reverse else 1]
    return HistoryResult(publications, history.position)
