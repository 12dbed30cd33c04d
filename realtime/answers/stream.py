"""The channel of an answer: what it has, and its one end.

Each publication has a version, which grows by one; the last one has the greatest version there
is. The engine takes no publication whose version is not newer, so of all who want to end an answer
one does, and nothing follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from realtime.answers import forms
from realtime.answers.models import Answer
from realtime.cluster.member import NewPublication
from realtime.engine.base import Published
from realtime.engine.versions import Version
from realtime.errors import EngineUnavailable, NoReply, UnrecoverablePosition
from realtime.hooks.site_values import to_payload
from realtime.protocol.messages import UINT64_MAX, StreamPosition
from realtime.server_api import operations
from realtime.server_api.arguments import Position, stream_position
from realtime.server_api.queries import history, reading
from realtime.serving import serving

LAST = UINT64_MAX
"""The version of the last publication."""
ATTEMPTS = 20
"""How often an end is published anew because a chunk came before it, or no reply came."""


def end_of(row: Answer) -> str | None:
    """Return the status in the last publication of an answer; None if it goes on.

    Raises:
        EngineUnavailable: the engine is away.
    """
    latest = history(row.own_channel, limit=1, reverse=True)
    return latest[0].get("tags", {}).get(forms.END) if latest else None


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


def publish_end(
    row: Answer,
    chunks: list[Any],
    status: str,
    *,
    own: Any = None,
    metadata: Any = None,
    expect: Position | None = None,
) -> list[Any] | None:
    """Publish the end of an answer. Blocks that are open are closed.

    Args:
        chunks: the answer so far.
        own: the end of the site, if it has one.
        expect: the position of the last of the chunks.

    Returns:
        All chunks; None unless the engine is known to have taken the end.

    Raises:
        EngineUnavailable: the engine is away.
    """
    form = row.of_form
    begun = chunks or forms.begin(form, str(row.pk), row.channel)
    is_own = own is not None and forms.status_of(own) == status
    ending = [own] if is_own else forms.ending(form, status, begun, metadata)
    last = [*begun[len(chunks) :], *forms.closing(begun), *ending]
    data = forms.end_data_of(form, last, status, metadata)
    try:
        is_kept = publish_one(publication(row, LAST, data, status, expect))
    except NoReply:  # the engine may have taken it
        return None
    return forms.joined(form, [*chunks, *last]) if is_kept else None


def end(row: Answer, status: str) -> tuple[str, list[Any]]:
    """End an answer that another process may be writing. Return its status, and all chunks.

    An answer that has ended stays as it is.

    Raises:
        EngineUnavailable: the engine is away; the answer may have ended.
    """
    for _ in range(ATTEMPTS):
        chunks, position, ended = _read(row)
        if ended is not None:
            return ended, chunks
        publish_end(row, chunks, status, expect=position)
    raise EngineUnavailable(f"answer {row.pk} is written faster than it could be ended")


def _read(row: Answer) -> tuple[list[Any], Position, str | None]:
    """Return an answer: its chunks, joined, their position, and the status if it has ended."""
    try:
        result = serving.call(reading(row.own_channel, since=row.saved))
    except UnrecoverablePosition:  # the engine lost the stream; what it has now is all there is
        result = serving.call(reading(row.own_channel))
    chunks, ended = row.chunks(), None
    for each in result.publications:
        chunks += forms.chunks_of(row.of_form, msgspec.json.decode(each.data.json))
        ended = (each.tags or {}).get(forms.END) or ended
    top = result.position or StreamPosition(0, "")
    return forms.joined(row.of_form, chunks), Position(top.offset, top.epoch), ended
