"""First and last: what the first and the last of something means, over all nodes.

The engine reports what this node lists first or last, the sweeper what ended because a node died.
Channels and users become signals, users in channels become joins and leaves.
"""

from __future__ import annotations

from realtime.cluster.context import Context
from realtime.cluster.dead_nodes import Sweeper
from realtime.engine.base import Engine
from realtime.engine.lists import Kind
from realtime.node.hooks import Events
from realtime.node.user_joins import UserJoins


class FirstAndLast:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, context: Context, engine: Engine, events: Events) -> None:
        self._events = events
        self.user_joins = UserJoins(context, engine.broker, engine.lists)
        self._sweeper: Sweeper | None = None
        if engine.cluster is not None:
            self._sweeper = Sweeper(
                context,
                engine.cluster,
                engine.lists,
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

    def on_first(self, kind: Kind, name: str) -> None:
        """See `engine.base.Receiver`."""
        if kind is Kind.CHANNELS:
            self._events.emit("channel_occupied", channel=name)
        elif kind is Kind.USERS:
            self._events.emit("user_online", user=name)
        else:
            self.user_joins.on_first(name)

    def on_last(self, kind: Kind, name: str, *, certain: bool = True) -> None:
        """See `engine.base.Receiver`. `certain`: False for what was at a node that died."""
        if kind is Kind.CHANNELS:
            self._events.emit("channel_vacated", channel=name, certain=certain)
        elif kind is Kind.USERS:
            self._events.emit("user_offline", user=name, certain=certain)
        else:
            self.user_joins.on_last(name)
