"""Recovery of a client: the pure part.

A stream counts publications from offset 1 within an epoch. History keeps the newest of them, and
may have lost some that a client asks for. Publications that arrive while history is read are kept
back; `merge` puts both together, so that the client gets each exactly once, oldest first.

docs/protocol.md, 3.8, 3.9 and 16.6, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.tag_filters import TagsFilter

ENVELOPE_BYTES = 128
"""Bytes of a publication, or of its client info, in a reply besides what it carries."""


class Recovered(NamedTuple):
    """Recovery as the subscribe reply carries it."""

    publications: tuple[Publication, ...]
    position: StreamPosition
    recovered: bool


def recover(
    stream: History, since: StreamPosition, *, empty_epoch_matches: bool = False
) -> Recovered:
    """Recover a client that has seen a stream up to a position.

    Args:
        stream: its history, at least from the publication after `since`.
        since: the position.
        empty_epoch_matches: whether a position without an epoch is one of this stream.

    Returns:
        The publications that the client missed and history still has. If `recovered` is false,
        there were others.
    """
    top = stream.position
    if empty_epoch_matches and not since.epoch:
        since = StreamPosition(since.offset, top.epoch)
    if since.offset >= top.offset:
        return Recovered((), top, since == top)
    missed = tuple(p for p in stream.publications if p.offset > since.offset)
    if not missed:
        return Recovered((), top, False)
    # history has no gaps: if the first missed publication is there, all of them are
    complete = missed[0].offset == since.offset + 1 and since.epoch == top.epoch
    return Recovered(missed, top, complete)


def recover_newest(
    stream: History, since: StreamPosition, tags_filter: TagsFilter | None = None
) -> Recovered:
    """Recover a client in cache mode, where only the newest publication counts.

    Args:
        stream: the newest publication that its history keeps; with a filter all that it keeps,
            newest first.
        since: the position up to which the client has seen the stream.
        tags_filter: the newest publication that passes this counts.

    Returns:
        The newest publication, unless the client has it. If `recovered` is false, it was removed,
        or none that is kept passes the filter.
    """
    top = stream.position
    if since.offset and since == top:
        return Recovered((), top, True)
    if not stream.publications or stream.publications[0].offset != top.offset:
        return Recovered((), top, False)
    newest = passing(stream.publications, tags_filter)[:1]
    if tags_filter is not None and newest and since.epoch == top.epoch:
        newest = tuple(p for p in newest if p.offset > since.offset)
        return Recovered(newest, top, True)
    return Recovered(newest, top, bool(newest))


def passing(
    publications: Sequence[Publication], tags_filter: TagsFilter | None
) -> tuple[Publication, ...]:
    """Return the publications that pass a filter, in their order; all without one.

    The removal of a key passes each filter: its tags may not be those of the entry.
    """
    if tags_filter is None:
        return tuple(publications)
    return tuple(p for p in publications if p.removed or tags_filter.matches(p.tags))


def merge(answer: Recovered, held: Sequence[Publication]) -> Recovered | None:
    """Add the publications that arrived while history was read.

    Args:
        answer: what `recover` returned.
        held: the publications that were kept back, in order of arrival.

    Returns:
        Both together; None if there is a gap between them: the state is insufficient.
    """
    publications, position, recovered = answer
    offset = position.offset
    added: list[Publication] = []
    for publication in held:
        if publication.offset <= offset:
            continue
        if publication.offset != offset + 1:
            return None
        added.append(publication)
        offset = publication.offset
    if not added:
        return answer
    return Recovered((*publications, *added), StreamPosition(offset, position.epoch), recovered)


def newest_only(merged: Recovered) -> Recovered:
    """Return the answer in cache mode, from what `merge` returned, without what a filter keeps."""
    if not merged.publications:
        return merged
    return Recovered(merged.publications[-1:], merged.position, True)


def size_of(publications: Iterable[Publication]) -> int:
    """Return about how many bytes publications take in a reply, rather too many than too few."""
    size = 0
    for publication in publications:
        size += ENVELOPE_BYTES + max(len(publication.data.raw), len(publication.data.json))
        if (info := publication.info) is not None:
            size += ENVELOPE_BYTES + len(info.user) + len(info.client)
            for extra in (info.conn_info, info.chan_info):
                size += 0 if extra is None else max(len(extra.raw), len(extra.json))
    return size
