"""Context: what every part of a node needs, in one record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from realtime.config.options import Config
from realtime.errors import EngineUnavailable
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

    @contextmanager
    def logged(self, log: Callable[[str, object], None], text: str) -> Iterator[None]:
        """Let the block end where the engine fails. `log` gets the first failure of an outage."""
        try:
            yield
        except EngineUnavailable as error:
            if self.outage.begins():
                log(text, error)
