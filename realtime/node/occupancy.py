"""Occupancy: what the first and the last of something means, over all nodes.

The engine reports what this node lists first or last, the sweeper what ended because a node died.
Channels and users become signals, users in channels become joins and leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from realtime.cluster.sweeper import Sweeper
from realtime.engine.base import Engine
from realtime.engine.lists import Kind
from realtime.metrics import Outage
from realtime.node.attendance import Attendance
from realtime.node.hooks import Events
from realtime.timers import Timers


class Occupancy:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        uid: str,
        engine: Engine,
        events: Events,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        outage: Outage,
    ) -> None:
        """`uid`: the ID of the node."""
        self._events = events
        self.attendance = Attendance(engine.broker, engine.lists, timers, spawn, outage)
        self._sweeper: Sweeper | None = None
        if engine.cluster is not None:
            self._sweeper = Sweeper(
                uid,
                engine.cluster,
                engine.lists,
                timers,
                spawn,
                on_last=lambda kind, name: self.on_last(kind, name, certain=False),
                drained=events.drained,
            )

    def start(self) -> None:
        """Begin to look for nodes that died."""
        if self._sweeper is not None:
            self._sweeper.start()

    def begin_stop(self) -> None:
        """Look no more."""
        if self._sweeper is not None:
            self._sweeper.stop()

    def stop(self) -> None:
        """Leave to other nodes what is not over."""
        self.attendance.leave_behind()

    def on_first(self, kind: Kind, name: str) -> None:
        """See `engine.base.Receiver`."""
        if kind is Kind.CHANNELS:
            self._events.emit("channel_occupied", channel=name)
        elif kind is Kind.USERS:
            self._events.emit("user_online", user=name)
        else:
            self.attendance.on_first(name)

    def on_last(self, kind: Kind, name: str, *, certain: bool = True) -> None:
        """See `engine.base.Receiver`. `certain`: False for what was at a node that died."""
        if kind is Kind.CHANNELS:
            self._events.emit("channel_vacated", channel=name, certain=certain)
        elif kind is Kind.USERS:
            self._events.emit("user_offline", user=name, certain=certain)
        else:
            self.attendance.on_last(name)
