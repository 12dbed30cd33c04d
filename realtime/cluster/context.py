"""Context: what every part of a node needs, in one record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from realtime.config.options import Config
from realtime.metrics import Outage
from realtime.timers import Timers


@dataclass(frozen=True, slots=True)
class Context:
    """See the module. Belongs to the event loop of the node."""

    uid: str
    """The ID of the node."""
    config: Config
    loop: asyncio.AbstractEventLoop
    timers: Timers
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    """Runs a coroutine in the background. An exception is logged."""
    outage: Outage
    """Of the engine, as this node has seen it."""
