"""Raise an exception at a chosen place of the Redis clients, as a signal handler may."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import redis

import realtime.redis
from realtime.errors import EngineUnavailable

OURS = (os.path.dirname(str(realtime.redis.__file__)) + os.sep,)
WITH_REDIS_PY = (*OURS, os.path.dirname(redis.__file__) + os.sep)
"""Where a line can be interrupted: in our clients, or also in redis-py below them."""

Line = tuple[str, int, int]
"""File and number of a line, and the instruction in its function; -1 where only lines count."""
Run = Callable[[], object]


class TimeLimitReached(Exception):
    """Raised by a signal handler in the main thread, between any two lines."""


def lines_of(run: Run, places: tuple[str, ...], instructions: bool = False) -> list[Line]:
    """Call `run` and return what it executes in these places, each once, in order.

    Args:
        run: what is called.
        places: the files, or beginnings of their names.
        instructions: return each instruction of a line, and not the line as a whole.
    """
    lines: dict[Line, None] = {}
    _trace(run, places, lambda line: lines.setdefault(line), instructions)
    return list(lines)


def interrupt(line: Line, run: Run, error: type[BaseException] = TimeLimitReached) -> None:
    """Call `run`, and raise `error` before it executes this line for the first time."""

    def reach(reached: Line) -> None:
        if reached == line:
            raise error("interrupted")

    _trace(run, line[:1], reach, line[2] >= 0, error)


def _trace(
    run: Run,
    places: tuple[str, ...],
    reach: Callable[[Line], object],
    instructions: bool,
    *errors: type[BaseException],
) -> None:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(places):
            return None
        frame.f_trace_opcodes = instructions
        if event == "opcode":
            reach((file, frame.f_lineno, frame.f_lasti))
        elif event == "line" and not instructions:
            reach((file, frame.f_lineno, -1))
        return trace

    sys.settrace(trace)
    try:
        with contextlib.suppress(EngineUnavailable, *errors):
            run()
    finally:
        sys.settrace(None)
