"""A publication as a row, and back."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from realtime import payload
from realtime.cluster.member import NewPublication
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.errors import BadRequest
from realtime.pending.models import Pending, shard_of

ONCE_LIFETIME = 86_400
"""Seconds for which the engine remembers that a row was published."""


def row_of(new: NewPublication, due: datetime, created: datetime) -> Pending:
    """Return the row of a publication. It is not written yet.

    Raises:
        BadRequest: the name of the channel holds a null character, which databases refuse.
    """
    if "\0" in new.channel:
        raise BadRequest
    return Pending(
        shard=shard_of(new.channel),
        channel=new.channel,
        data=new.data.raw.decode(),
        extras=_extras(new),
        due=due,
        created=created,
    )


def _extras(new: NewPublication) -> str:
    extras: dict[str, Any] = {}
    if new.tags:
        extras["tags"] = dict(new.tags)
    if new.once is not None:
        extras["once"] = list(new.once)
    if new.skip_history:
        extras["skip_history"] = True
    if new.version is not None:
        extras["version"] = list(new.version)
    return json.dumps(extras) if extras else ""


def publication_of(row: Pending) -> NewPublication:
    """Return the publication that a row keeps.

    Raises:
        ValueError: the row holds something else.
    """
    extras = json.loads(row.extras) if row.extras else {}
    once = extras.get("once") or (row.key.hex, ONCE_LIFETIME)
    return NewPublication(
        row.channel,
        payload.check(row.data.encode()),
        extras.get("tags"),
        Once(*once),
        extras.get("skip_history", False),
        Version(*extras["version"]) if "version" in extras else None,
    )
