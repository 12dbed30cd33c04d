"""Real-time messaging inside a Django site: publish/subscribe with presence and recovery.

    from realtime import publish

    publish("chat:lobby", {"text": "hi"})

The functions are in `server_api.publishing`, `queries` and `connections`; they are loaded at first
use, so that importing a pure module of this package needs neither Django nor settings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from realtime.engine.nodes import NodeStatus
    from realtime.errors import EngineUnavailable, Error, NotServing
    from realtime.node.reader import PublicationsLost
    from realtime.server_api.arguments import Position
    from realtime.server_api.blocks import (
        ablock,
        ablocked,
        aunblock,
        block,
        blocked,
        unblock,
    )
    from realtime.server_api.connecting import (
        adisconnect,
        arefresh,
        asubscribe,
        aunsubscribe,
        disconnect,
        refresh,
        subscribe,
        unsubscribe,
    )
    from realtime.server_api.connections import (
        Connection,
        Connections,
        Subscribers,
        aconnections,
        anodes,
        around_trip,
        asubscribers,
        connections,
        nodes,
        round_trip,
        subscribers,
    )
    from realtime.server_api.listening import Heard, listen
    from realtime.server_api.publishing import (
        abroadcast,
        apublish,
        apublish_many,
        broadcast,
        publish,
        publish_many,
    )
    from realtime.server_api.queries import (
        achannels,
        ahistory,
        ahistory_remove,
        ainfo,
        aposition,
        apositions,
        apresence,
        apresence_stats,
        channels,
        history,
        history_remove,
        info,
        position,
        positions,
        presence,
        presence_stats,
    )
    from realtime.tokens import observer_token
    from realtime.typed.declaring import TypedChannel, TypedChannels, channel

__all__ = [
    "Connection",
    "Connections",
    "EngineUnavailable",
    "Error",
    "Heard",
    "NodeStatus",
    "NotServing",
    "Position",
    "PublicationsLost",
    "Subscribers",
    "TypedChannel",
    "TypedChannels",
    "ablock",
    "ablocked",
    "abroadcast",
    "achannels",
    "aconnections",
    "adisconnect",
    "ahistory",
    "ahistory_remove",
    "ainfo",
    "anodes",
    "aposition",
    "apositions",
    "apresence",
    "apresence_stats",
    "apublish",
    "apublish_many",
    "arefresh",
    "around_trip",
    "asubscribe",
    "asubscribers",
    "aunblock",
    "aunsubscribe",
    "block",
    "blocked",
    "broadcast",
    "channel",
    "channels",
    "connections",
    "disconnect",
    "history",
    "history_remove",
    "info",
    "listen",
    "nodes",
    "observer_token",
    "position",
    "positions",
    "presence",
    "presence_stats",
    "publish",
    "publish_many",
    "refresh",
    "round_trip",
    "subscribe",
    "subscribers",
    "unblock",
    "unsubscribe",
]

_CONNECTIONS = (
    "Connection",
    "Connections",
    "Subscribers",
    "aconnections",
    "anodes",
    "around_trip",
    "asubscribers",
    "connections",
    "nodes",
    "round_trip",
    "subscribers",
)
_BLOCKS = ("ablock", "ablocked", "aunblock", "block", "blocked", "unblock")
_CONNECTING = (
    "adisconnect",
    "arefresh",
    "asubscribe",
    "aunsubscribe",
    "disconnect",
    "refresh",
    "subscribe",
    "unsubscribe",
)
_PUBLISHING = (
    "abroadcast",
    "apublish",
    "apublish_many",
    "broadcast",
    "publish",
    "publish_many",
)
_MODULES = {
    **dict.fromkeys(__all__, "realtime.server_api.queries"),
    **dict.fromkeys(_CONNECTIONS, "realtime.server_api.connections"),
    **dict.fromkeys(_BLOCKS, "realtime.server_api.blocks"),
    **dict.fromkeys(_CONNECTING, "realtime.server_api.connecting"),
    **dict.fromkeys(_PUBLISHING, "realtime.server_api.publishing"),
    **dict.fromkeys(("EngineUnavailable", "Error", "NotServing"), "realtime.errors"),
    "PublicationsLost": "realtime.node.reader",
    **dict.fromkeys(("Heard", "listen"), "realtime.server_api.listening"),
    "NodeStatus": "realtime.engine.nodes",
    "Position": "realtime.server_api.arguments",
    "observer_token": "realtime.tokens",
    **dict.fromkeys(("TypedChannel", "TypedChannels", "channel"), "realtime.typed.declaring"),
}
"""Name → the module that has it."""


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that loads its names at their first use (PEP 562).

    Args:
        package: the name of the package, for the message of AttributeError.
        modules: name → the module that has it.
    """

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)  # the next use finds it without this function
        return value

    return load


__getattr__ = lazy_names(__name__, _MODULES)
