"""The output of a command that goes on: a screen, a file, or a pipe that may be closed."""

from __future__ import annotations

import os
import select
import shutil
import sys
import time

_HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
"""Control sequences: go to the first line, clear the rest of a line, and of the screen."""


def screen(text: str) -> str:
    """Return what draws a text over the screen; what does not fit is left out."""
    columns, lines = shutil.get_terminal_size()
    shown = [line[:columns] + _CLEAR_LINE for line in text.split("\n")[: lines - 1]]
    return _HOME + "\n".join(shown) + _CLEAR_REST


def pause(seconds: float) -> None:
    """Wait.

    Raises:
        BrokenPipeError: what reads the output has gone.
    """
    try:
        output = select.poll()
        output.register(sys.stdout.fileno(), 0)  # which reports errors only
    except (AttributeError, OSError, ValueError):  # no such call here, or no file
        time.sleep(seconds)
        return
    if output.poll(seconds * 1000):
        raise BrokenPipeError


def silence() -> None:
    """Drop what is still to be written: what reads the output has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
