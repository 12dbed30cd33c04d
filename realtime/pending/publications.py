"""A publication as a row, and back.

What a publication has besides its channel and its data is JSON text in the row. The text is read as
strictly as the arguments of `publish`, for anybody who can write to the database can write it.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from realtime import payload
from realtime.cluster.member import NewPublication
from realtime.engine.once import Once
from realtime.errors import BadRequest
from realtime.payload import site_text
from realtime.pending.models import Pending, shard_of
from realtime.server_api.arguments import once_of, tags_of, ttl_of, version_of, whole

ONCE_LIFETIME = 86_400
"""Seconds for which the engine remembers that a row was published."""

MAX_LENGTH = 64 * 2**20
"""Characters of a row. Redis closes the connection on which half a gigabyte comes."""


def row_of(new: NewPublication, due: datetime, created: datetime) -> Pending:
    """Return the row of a publication. It is not written yet.

    Raises:
        BadRequest: the name of the channel holds a null character, which databases refuse.
        ValueError: the publication is longer than a row may be.
    """
    if "\0" in new.channel:
        raise BadRequest
    data, more = new.data.raw.decode(), _to_text(new)
    check_length(len(data) + len(more))
    return Pending(
        shard=shard_of(new.channel),
        channel=new.channel,
        data=data,
        extras=more,
        due=due,
        created=created,
    )


def check_length(length: int) -> None:
    """Raise ValueError if a row is longer than it may be. `length`: of data and extras."""
    if length > MAX_LENGTH:
        raise ValueError(f"a durable publication has at most {MAX_LENGTH} characters, not {length}")


def publication_of(row: Pending, lifetime: int = ONCE_LIFETIME) -> NewPublication:
    """Return the publication that a row keeps; see `reading.due_rows`.

    Args:
        lifetime: of the key of the row, if the caller gave none.

    Raises:
        ValueError, TypeError: the row holds something else, or is too long.
    """
    check_length(row.length)
    data = payload.check(row.data.encode())
    new = _with_extras(NewPublication(row.channel, data), row.extras)
    return new if new.once else replace(new, once=Once(row.key.hex, lifetime))


def _to_text(new: NewPublication) -> str:
    """Return tags, idempotency key and the like as a JSON object; "" if there is nothing."""
    extras: dict[str, Any] = {}
    if new.tags:
        extras["tags"] = dict(new.tags)
    if new.once is not None:
        extras["once"] = list(new.once)
    if new.skip_history:
        extras["skip_history"] = True
    if new.version is not None:
        extras["version"] = list(new.version)
    if new.key:
        extras["change"] = [new.key, new.removed, new.key_mode, new.ttl]
    return json.dumps(extras) if extras else ""


def _with_extras(new: NewPublication, text: str) -> NewPublication:
    """Return a publication with what `_to_text` made a text of. Keys of later versions are ignored.

    Raises:
        ValueError, TypeError: it is not such a text.
    """
    if not text:
        return new
    try:
        extras = json.loads(text)
    except RecursionError:
        raise ValueError("not a JSON value: nested too deeply") from None
    if not isinstance(extras, dict):
        raise TypeError("extras must be an object")
    skip_history = extras.get("skip_history", False)
    if not isinstance(skip_history, bool):
        raise TypeError("skip_history must be true or false")
    new = replace(new, tags=tags_of(extras.get("tags")), skip_history=skip_history)
    if "once" in extras:
        key, lifetime, number = _items("once", extras["once"], 3)
        once = once_of(key, whole("once_lifetime", lifetime))
        if once is not None and number is not None:
            once = once._replace(number=whole("a number", number))
        new = replace(new, once=once)
    if "version" in extras:
        number, epoch = _items("version", extras["version"], 2)
        new = replace(new, version=version_of(whole("version", number), epoch))
    if "change" in extras:
        key, removed, key_mode, ttl = _items("change", extras["change"], 4)
        if key_mode not in ("", "if_new", "if_exists") or not isinstance(removed, bool):
            raise TypeError("change must have a mode, and say whether it removes the key")
        key = site_text("a key", key)
        new = replace(new, key=key, removed=removed, key_mode=key_mode, ttl=ttl_of(ttl))
    return new


def _items(what: str, value: object, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise TypeError(f"{what} must be a list of {count}")
    return value
