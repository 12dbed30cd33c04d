"""Blocked users, as plain functions; what holds for all is in `queries`.

docs/limits.md.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

from realtime.hooks.site_values import user_id
from realtime.protocol.messages import UserID
from realtime.server_api import operations
from realtime.serving import serving


def block(user: Any, seconds: float) -> list[str]:
    """Close all connections of a user, and refuse new ones for some seconds.

    A block of the same user takes the place of the one before.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.
        seconds: more than 0, ten years at most.

    Returns:
        The names of the nodes that are silent, see `nodes`: they do it when they are back.

    Raises:
        BadRequest: code 107, the user is anonymous, or the ID has more than 255 characters.
        LimitExceeded: code 106, 10 000 users are blocked.
        TypeError: `user` is neither a user nor an ID, or `seconds` is not a number.
        ValueError: `seconds` is not between 0 and ten years.
    """
    work = partial(operations.block, user=user_id(user), until=_until(seconds))
    return serving.call(work, async_name="ablock")


async def ablock(user: Any, seconds: float) -> list[str]:
    """Close all connections of a user, and refuse new ones for some seconds.

    Async version of `block`.
    """
    work = partial(operations.block, user=user_id(user), until=_until(seconds))
    return await serving.acall(work)


def _until(seconds: float) -> float:
    """Return when a block that begins now ends, in Unix seconds. `seconds`: its length."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"seconds must be a number, not {type(seconds).__name__}")
    if not 0 < seconds <= operations.MAX_BLOCK_SECONDS:
        raise ValueError(f"seconds must be between 0 and ten years, not {seconds}")
    return time.time() + seconds


def unblock(user: Any) -> list[str]:
    """Let a user connect again. A user who is not blocked is ignored.

    Args:
        user: as in `block`.

    Returns:
        The names of the nodes that are silent, see `nodes`: they do it when they are back.

    Raises:
        BadRequest: code 107, the user is anonymous.
        TypeError: `user` is neither a user nor an ID.
    """
    work = partial(operations.unblock, user=user_id(user))
    return serving.call(work, async_name="aunblock")


async def aunblock(user: Any) -> list[str]:
    """Let a user connect again. Async version of `unblock`."""
    return await serving.acall(partial(operations.unblock, user=user_id(user)))


def blocked() -> dict[str, datetime]:
    """Return the users who are blocked.

    Returns:
        User ID → when the block ends, in UTC; those that end first come first.
    """
    return _moments(serving.call(operations.blocked, async_name="ablocked"))


async def ablocked() -> dict[str, datetime]:
    """Return the users who are blocked. Async version of `blocked`."""
    return _moments(await serving.acall(operations.blocked))


def _moments(ends: dict[UserID, float]) -> dict[str, datetime]:
    return {user: datetime.fromtimestamp(end, UTC) for user, end in ends.items()}
