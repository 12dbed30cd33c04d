"""What a client missed: the pure part of recovery.

A channel's stream counts publications from offset 1 within an epoch. History keeps the
last of them (and may have lost the first of those a client asks for). While history is
being read, new publications arrive and are held back; `merge` puts both together so that
the client gets each exactly once, oldest first.

Spec: Channel options (history_recover); Subscribe result fields.
Beyond the spec: the case table of Centrifugo 2.8 is followed row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition


class Recovered(NamedTuple):
    """What the subscribe reply carries."""

    publications: tuple[Publication, ...]
    position: StreamPosition
    recovered: bool


def recover(stream: History, since: StreamPosition) -> Recovered:
    """Answer a client that last saw `since`.

    `stream` holds everything that is kept. Publications are returned even when
    `recovered` is false, so that the client may show what there is.
    """
    top = stream.position
    if since.offset >= top.offset:
        return Recovered((), top, since == top)
    missed = tuple(p for p in stream.publications if p.offset > since.offset)
    if not missed:
        return Recovered((), top, False)
    # what is kept has no gaps, so this is all of it when the first missed one is gone
    complete = missed[0].offset == since.offset + 1 and since.epoch == top.epoch
    return Recovered(missed, top, complete)


def merge(answer: Recovered, held: Sequence[Publication]) -> Recovered | None:
    """Add the publications that arrived while history was read.

    Returns None when there is a gap between history and what was held: the state is
    insufficient and the client has to start again.
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
