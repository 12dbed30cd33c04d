"""Traps: places at which a process of the copy of the example kills itself, when it is told to.

The harness copies this module beside the settings of the copy. It sets a trap by a file; the first
process that comes to the place removes the file and dies. So one process dies for each trap, in the
middle of its work.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

PLACES = ("commit", "_publish", "_settle")
"""A writer after its commit; a relay before it publishes rows, and before it deletes them."""


def trap(directory: Path, place: str) -> Path:
    """Return the file that sets a trap."""
    return directory / f"trap-{place}"


def come_to(place: str) -> None:
    """Die here if there is a trap."""
    try:
        trap(Path(__file__).parent, place).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def watch(kind: Any, method: str) -> None:
    """Make a place of the entry to a method."""
    original = getattr(kind, method)

    def enter(*arguments: Any) -> Any:
        come_to(method)
        return original(*arguments)

    setattr(kind, method, enter)
