"""Asks functions of the site from synchronous code: a view, a template.

The request or the command is what bounds the time there, not `hook_timeout`, and Django looks
after the database connections.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from asgiref.sync import async_to_sync

from realtime.errors import Disconnect, Error, InternalError
from realtime.hooks.running import name_of

logger = logging.getLogger("realtime.hooks")

T = TypeVar("T")


def call(function: Callable[..., Any], argument: Any, read: Callable[[Any], T]) -> T:
    """What `read` makes of the answer of a function or a coroutine function.

    Raises:
        Error, Disconnect: the function refuses.
        InternalError: it failed, or its answer cannot be used; the log has the reason.
    """
    try:
        answer = function(argument)
        if inspect.isawaitable(answer):
            answer = async_to_sync(_wait)(answer)
        return read(answer)
    except (Error, Disconnect):
        raise
    except Exception:
        logger.exception("%s failed", name_of(function))
        raise InternalError from None


async def _wait(answer: Awaitable[Any]) -> Any:
    return await answer
