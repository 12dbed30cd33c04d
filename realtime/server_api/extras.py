"""What a publication has besides its channel and its data, as JSON text, and back.

The text is read as strictly as the arguments of `publish`, for anybody who can write to the
database can write it.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from realtime.cluster.member import NewPublication
from realtime.server_api.arguments import once_of, tags_of, version_of, whole


def to_text(new: NewPublication) -> str:
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
    return json.dumps(extras) if extras else ""


def with_extras(new: NewPublication, text: str) -> NewPublication:
    """Return a publication with what `to_text` made a text of. Keys of later versions are ignored.

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
    return new


def _items(what: str, value: object, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise TypeError(f"{what} must be a list of {count}")
    return value
