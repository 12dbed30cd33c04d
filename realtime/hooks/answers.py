"""Answers of hooks, and their meaning."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from realtime import channel_rules
from realtime.engine.maps import check_key
from realtime.errors import BadRequest, PermissionDenied
from realtime.hooks.site_values import to_payload, user_id
from realtime.node.hooks import Identity, MapChange, Permission, Refreshed
from realtime.payload import Payload, site_text
from realtime.protocol.messages import UserID

logger = logging.getLogger("realtime.hooks")


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON-serialisable value, where True, False or None would have another meaning."""

    value: Any


@dataclass(frozen=True, slots=True)
class Put:
    """What a client puts into a map instead."""

    key: str
    data: Any = True
    """JSON-serialisable; True: what the client sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """The identity of a client."""

    user: Any = ""
    """User ID, or a Django user, whose primary key is the ID; "" for an anonymous client.

    A client with `Connected(user="")` may connect also without the option `client_anonymous`.
    """
    info: Any = None
    """JSON-serialisable connection info, which others see as `conn_info`."""
    channels: Iterable[str] = ()
    """Server-side subscriptions."""
    ttl: float | None = None
    """Seconds until the connection expires or the refresh hook is called; None: never."""
    data: Any = None
    """JSON-serialisable data for the client, in the reply to connect."""
    meta: Any = None
    """JSON-serialisable value that later hooks and proxies can read, and no client."""

    def identity(self) -> Identity:
        """Return it as commands use it. Reads the database if `channels` is a query.

        Raises:
            TypeError, ValueError: a value has the wrong type, or no JSON form.
        """
        return Identity(
            user=user_id(self.user),
            info=optional(self.info),
            channels=tuple(channel_rules.names(self.channels)),
            expires_at=None if self.ttl is None else time.time() + _seconds(self.ttl),
            data=optional(self.data),
            meta=optional(self.meta),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """That a client may subscribe, until the hook is asked again."""

    info: Any = None
    """JSON-serialisable channel info, which others see as `chan_info`."""
    ttl: float | None = None
    """Seconds until the subscribe hook is called again for this client; None: it is not."""


def identity(answer: Any) -> Identity | None:
    """Return the identity that a connect hook answered with; None if it knows none.

    Raises:
        TypeError, ValueError: the answer is not a `Connected`, or a value in it is wrong.
    """
    if answer is None:
        return None
    if not isinstance(answer, Connected):
        raise TypeError(f"Connected or None expected, not {type(answer).__name__}")
    return answer.identity()


def refresh(answer: Any, user: UserID) -> Refreshed | None:
    """Return the new expiry that a refresh hook answered with; None to end the connection.

    Args:
        answer: of the hook.
        user: of the connection, which no answer can change: for another user, the result is None.

    Raises:
        TypeError, ValueError: the answer is neither.
    """
    if answer is None or answer is False:
        return None
    if isinstance(answer, Connected):
        identity = answer.identity()
        if answer.user != "" and identity.user != user:
            logger.info("A refresh hook answered with another user than the connection's")
            return None
        if identity.expires_at is None:
            raise TypeError("Connected of a refresh hook needs a ttl")
        return Refreshed(identity.expires_at, identity.info)
    return Refreshed(_seconds(answer))


def permission(answer: Any) -> Permission:
    """Return the permission that a subscribe hook answered with.

    Raises:
        PermissionDenied: the hook refuses.
        TypeError, ValueError: the info has no JSON form, or the time to live is none.
    """
    if answer is False:
        raise PermissionDenied
    if isinstance(answer, Allowed):
        ttl = None if answer.ttl is None else _seconds(answer.ttl)
        if ttl is not None and ttl <= 0:
            raise ValueError(f"the ttl of Allowed must be more than 0, not {ttl:g}")
        return Permission(optional(answer.info), ttl)
    return Permission(None if answer is True else optional(answer))


def published(answer: Any, data: Payload) -> Payload:
    """Return the data to publish after the answer of a publish hook.

    Args:
        answer: of the hook.
        data: that the client sent.

    Raises:
        PermissionDenied: the hook refuses.
        TypeError: the data have no JSON form.
    """
    if answer is False:
        raise PermissionDenied
    if answer is None or answer is True:
        return data
    return to_payload(answer.value if isinstance(answer, Data) else answer)


def put(answer: Any, change: MapChange) -> MapChange:
    """Return the change to make after the answer of a hook for maps; see `published`.

    Raises:
        ValueError: the key is none, or the answer to a removal has data.
    """
    key = change.key
    if isinstance(answer, Put):
        key, answer = answer.key, answer.data
        try:
            check_key(site_text("key", key))
        except BadRequest:
            raise ValueError("the key is empty, too long, or holds a null character") from None
    if change.data is not None:
        return MapChange(key, published(answer, change.data))
    if answer is False:
        raise PermissionDenied
    if answer is not None and answer is not True:
        raise ValueError("a removal has no data")
    return MapChange(key)


def optional(value: Any) -> Payload | None:
    """Return a value as JSON; None for None.

    Raises:
        TypeError: it has no JSON form.
    """
    if isinstance(value, Data):
        return to_payload(value.value)
    return None if value is None else to_payload(value)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number of seconds expected, not {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number of seconds")
    return float(value)
