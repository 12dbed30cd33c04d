"""The channel of an answer: what it has, and its one end.

Each publication has a version, which grows by one; the last one has the greatest version there
is. The engine takes no publication whose version is not newer, so of all who want to end an answer
one does, and nothing follows it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from realtime.answers import forms
from realtime.answers.models import Answer
from realtime.cluster.member import NewPublication
from realtime.engine.base import Published
from realtime.engine.versions import Version
from realtime.errors import EngineUnavailable, NoReply, UnrecoverablePosition
from realtime.hooks.site_values import to_payload
from realtime.protocol.messages import UINT64_MAX, HistoryResult, StreamPosition
from realtime.server_api import operations
from realtime.server_api.arguments import Position, stream_position
from realtime.server_api.queries import reading
from realtime.serving import serving

logger = logging.getLogger("realtime.answers")

LAST = UINT64_MAX
"""The version of the last publication."""
ATTEMPTS = 20
"""How often an end is published anew because a chunk came before it, or no reply came."""


class Content(NamedTuple):
    """What there is of an answer."""

    chunks: list[Any]
    """Joined."""
    position: Position
    end: str | None
    """The status in its last publication; None: there is none yet."""


def read(row: Answer) -> Content:
    """Read an answer: what its row has, then what follows in its channel.

    Raises:
        EngineUnavailable: the engine is away.
    """
    try:
        result = _history(row, Position(row.position, row.epoch) if row.epoch else None)
    except UnrecoverablePosition:  # the engine lost the stream; what it has now is all there is
        result = _history(row, None)
    chunks, end = row.chunks(), None
    for publication in result.publications:
        chunks += forms.chunks_of(row.of_form, msgspec.json.decode(publication.data.json))
        end = (publication.tags or {}).get(forms.END) or end
    top = result.position or StreamPosition(0, "")
    position = Position(top.offset, top.epoch)
    return Content(forms.joined(row.of_form, chunks), position, end)


def end_of(row: Answer) -> str | None:
    """Return the status in the last publication of an answer; None if it goes on.

    Raises:
        EngineUnavailable: the engine is away.
    """
    for publication in _history(row, None, limit=1, reverse=True).publications:
        return (publication.tags or {}).get(forms.END)
    return None


def _history(row: Answer, since: Position | None, **options: Any) -> HistoryResult:
    return serving.call(reading(row.own_channel, since=since, **options))


def publication(
    row: Answer, number: int, data: object, end: str | None = None, expect: Position | None = None
) -> NewPublication:
    """Return a publication of an answer. `number`: its version; `end`: the status after it."""
    return NewPublication(
        row.own_channel,
        to_payload(data),
        tags=None if end is None else {forms.END: end},
        version=Version(number, str(row.pk)),
        expect=stream_position(expect),
    )


def publish(publications: Sequence[NewPublication]) -> list[Published | EngineUnavailable]:
    """Publish in one round trip; raises EngineUnavailable if nothing was published."""
    checked = [(new, operations.check_new(new, serving.config())) for new in publications]
    return serving.call(lambda member: member.publish_many(checked))


def publish_one(new: NewPublication) -> bool:
    """Publish. Return whether the engine took it; raises EngineUnavailable."""
    [outcome] = publish([new])
    if isinstance(outcome, EngineUnavailable):
        raise outcome
    return outcome.kept


def end(row: Answer, status: str) -> Content:
    """End an answer that another process may be writing. Return what it has, with its end.

    Blocks that are open are closed. An answer that has ended stays as it is.

    Raises:
        EngineUnavailable: the engine is away; the answer may have ended.
    """
    for _ in range(ATTEMPTS):
        content = read(row)
        if content.end is not None:
            return content
        form = row.of_form
        begun = content.chunks or forms.begin(form, str(row.pk), row.channel)
        last = [*forms.closing(begun), *forms.ending(form, status, begun)]
        if not content.chunks:
            last = [*begun, *last]
        try:
            data = forms.end_data_of(form, last, status)
            publish_one(publication(row, LAST, data, status, content.position))
        except NoReply:
            logger.info("No reply to the end of answer %s; looking whether it has ended", row.pk)
    raise EngineUnavailable(f"answer {row.pk} is written faster than it could be ended")
