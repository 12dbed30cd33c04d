"""What a check says."""

from __future__ import annotations

from collections.abc import Callable

from realtime.errors import Error


def outcome(check: Callable[..., None], *arguments: object) -> type[Error] | None:
    """The error that the check raises with these arguments, or None."""
    try:
        check(*arguments)
    except Error as error:
        return type(error)
    return None
