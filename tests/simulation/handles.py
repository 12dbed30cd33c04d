"""Handles, futures and tasks of the loops of a world, which are made quickly."""

from __future__ import annotations

import asyncio
import itertools
from contextvars import Context, copy_context
from typing import Any


class Handle(asyncio.Handle):
    """A handle that is made quickly: most of what happens is one."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: Any, context: Context | None) -> None:
        self._context = copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled, self._repr, self._source_traceback = False, None, None


class TimerHandle(asyncio.TimerHandle):
    """As `Handle`."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Any, args: Any, loop: Any, context: Context | None
    ) -> None:
        Handle.__init__(self, callback, args, loop, context)  # type: ignore[arg-type]
        self._when, self._scheduled = when, False


class Future(asyncio.Future[Any]):
    """A future whose place in a set does not depend on its address."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    number = 0
    # the constructor puts the task into a set, before it has a number
    _numbers = itertools.count(1)

    def __hash__(self) -> int:
        if not self.number:
            self.number = next(self._numbers)
        return self.number
