"""The test site on a machine whose clock is TEST_CLOCK_AHEAD seconds ahead."""

from __future__ import annotations

import os
import time

AHEAD = float(os.environ["TEST_CLOCK_AHEAD"])
true_time = time.time


def shifted() -> float:
    """Unix seconds, as that machine believes."""
    return true_time() + AHEAD


time.time = shifted

from tests.site.asgi import application  # noqa: E402

__all__ = ["application"]
