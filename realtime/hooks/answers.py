"""What a hook may answer, and what its answers mean."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from realtime import channel_rules, payload
from realtime.errors import PermissionDenied
from realtime.node.hooks import Identity, Refresh
from realtime.payload import Payload
from realtime.protocol.messages import UserID

logger = logging.getLogger("realtime.hooks")


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON-serialisable value, where True, False and None would mean something else."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """Who a client is."""

    user: Any = ""
    """User ID, or a Django user, whose primary key is the ID; "" for an anonymous client.

    A client with `Connected(user="")` is in, also where `client_anonymous` is off.
    """
    info: Any = None
    """JSON-serialisable connection info, which others see as `conn_info`."""
    channels: Iterable[str] = ()
    """Server-side subscriptions."""
    ttl: float | None = None
    """Seconds until the connection expires, or is renewed by the refresh hook; None: never."""
    data: Any = None
    """JSON-serialisable data for the client, in the reply to connect."""

    def identity(self) -> Identity:
        """As commands want it. May read the database, where `channels` is a query.

        Raises:
            TypeError, ValueError: something is not what it has to be, or has no JSON form.
        """
        return Identity(
            user=user_id(self.user),
            info=optional(self.info),
            channels=tuple(channel_rules.names(self.channels)),
            expires_at=None if self.ttl is None else time.time() + _seconds(self.ttl),
            data=optional(self.data),
        )


def identity(answer: Any) -> Identity | None:
    """What an answer of a connect hook means: who a client is, or None.

    Raises:
        TypeError, ValueError: it is no `Connected`, or holds what cannot be used.
    """
    if answer is None:
        return None
    if not isinstance(answer, Connected):
        raise TypeError(f"Connected or None is wanted, not {type(answer).__name__}")
    return answer.identity()


def renewal(answer: Any, user: UserID) -> Refresh | None:
    """Return what a refresh hook's answer means: the new expiry, or None to end the connection.

    Args:
        answer: of the hook.
        user: of the connection, which no answer can change: for another user, the result is None.

    Raises:
        TypeError, ValueError: it is neither.
    """
    if answer is None or answer is False:
        return None
    if isinstance(answer, Connected):
        renewed = answer.identity()
        if answer.user != "" and renewed.user != user:
            logger.info("A refresh hook answered with another user than the connection's")
            return None
        if renewed.expires_at is None:
            raise TypeError("Connected needs a ttl here")
        return Refresh(renewed.expires_at, renewed.info)
    return Refresh(_seconds(answer))


def user_id(user: Any) -> str:
    """The user ID of a Django user, or of an ID: text, a whole number or a UUID.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(user, str):
        return user
    if isinstance(user, int | UUID) and not isinstance(user, bool):
        return str(user)
    if hasattr(user, "is_authenticated"):
        return str(user.pk) if user.is_authenticated else ""
    raise TypeError(f"a user or a user ID is wanted, not {type(user).__name__}")


def channel_info(answer: Any) -> Payload | None:
    """What an answer of a subscribe hook means: channel info, or None.

    Raises:
        PermissionDenied: the hook refuses.
        TypeError: the info has no JSON form.
    """
    if answer is False:
        raise PermissionDenied
    return None if answer is True else optional(answer)


def published(answer: Any, data: Payload) -> Payload:
    """What an answer of a publish hook means: what is published.

    Raises:
        PermissionDenied: the hook refuses.
        TypeError: the data have no JSON form.
    """
    if answer is False:
        raise PermissionDenied
    if answer is None or answer is True:
        return data
    return payload.from_object(answer.value if isinstance(answer, Data) else answer)


def optional(value: Any) -> Payload | None:
    """A value as JSON; None for None.

    Raises:
        TypeError: it has no JSON form.
    """
    if isinstance(value, Data):
        return payload.from_object(value.value)
    return None if value is None else payload.from_object(value)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number of seconds is wanted, not {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of seconds")
    return float(value)
