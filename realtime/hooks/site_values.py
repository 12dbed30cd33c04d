"""Values that the code of a site passes: users, and data that become JSON."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.module_loading import import_string

from realtime import payload
from realtime.config import sources
from realtime.payload import Payload
from realtime.protocol.messages import UserID


def user_id(user: Any) -> UserID:
    """Return the user ID of a Django user, or of an ID: text, a whole number or a UUID.

    Returns:
        "" for AnonymousUser.

    Raises:
        TypeError: it is neither, or a user that is not saved, or text that is not UTF-8.
    """
    if isinstance(user, str):
        return payload.site_text("a user ID", user)
    if isinstance(user, int | UUID) and not isinstance(user, bool):
        return str(int(user) if isinstance(user, int) else user)
    if hasattr(user, "is_authenticated"):
        if not user.is_authenticated:
            return ""
        if user.pk is None:
            raise TypeError("this user has no primary key: it is not saved, or was deleted")
        return payload.site_text("a user ID", str(user.pk))
    raise TypeError(f"a user or a user ID expected, not {type(user).__name__}")


def to_payload(value: object) -> Payload:
    """Make a payload of a Python object, by the encoder that `json_encoder` names.

    Without one, Django's own types have the form that `docs/python.md` says.

    Raises:
        TypeError: the object, or a part of it, has no JSON form.
        ValueError: it is nested too deeply.
        ImportError: `json_encoder` does not name a class; a system check says so, too.
    """
    path = sources.current().json_encoder
    if not path:
        return payload.from_object(value, json_form)
    if isinstance(value, msgspec.Raw):  # JSON already
        return payload.check(bytes(value))
    try:
        text = json.dumps(value, cls=encoder(path), allow_nan=False)
    except RecursionError:
        raise ValueError("not a JSON value: nested too deeply") from None
    except ValueError as error:
        raise TypeError(f"this has no JSON form: {error}") from None
    return payload.check(text.encode())


@lru_cache(maxsize=8)
def encoder(path: str) -> type[json.JSONEncoder]:
    """Return the class that a value of `json_encoder` names.

    Raises:
        ImportError: there is none, or it is not a subclass of `json.JSONEncoder`.
    """
    found = import_string(path)
    if not (isinstance(found, type) and issubclass(found, json.JSONEncoder)):
        raise ImportError(f"{path} is not a subclass of json.JSONEncoder")
    return found


_django = DjangoJSONEncoder().default


def json_form(value: Any) -> Any:
    """Return the form of a value whose type msgspec does not know."""
    # of these it knows the types themselves, and not safe strings, for example
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return _django(value)
