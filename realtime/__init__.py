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
    from realtime.engine.nodes import NodeStatus as NodeStatus
    from realtime.errors import EngineUnavailable as EngineUnavailable
    from realtime.errors import Error as Error
    from realtime.errors import NotServing as NotServing
    from realtime.node.reader import PublicationsLost as PublicationsLost
    from realtime.server_api.arguments import Position as Position
    from realtime.server_api.blocks import ablock as ablock
    from realtime.server_api.blocks import ablocked as ablocked
    from realtime.server_api.blocks import aunblock as aunblock
    from realtime.server_api.blocks import block as block
    from realtime.server_api.blocks import blocked as blocked
    from realtime.server_api.blocks import unblock as unblock
    from realtime.server_api.connecting import adisconnect as adisconnect
    from realtime.server_api.connecting import arefresh as arefresh
    from realtime.server_api.connecting import asubscribe as asubscribe
    from realtime.server_api.connecting import aunsubscribe as aunsubscribe
    from realtime.server_api.connecting import disconnect as disconnect
    from realtime.server_api.connecting import refresh as refresh
    from realtime.server_api.connecting import subscribe as subscribe
    from realtime.server_api.connecting import unsubscribe as unsubscribe
    from realtime.server_api.connections import Connection as Connection
    from realtime.server_api.connections import Connections as Connections
    from realtime.server_api.connections import Subscribers as Subscribers
    from realtime.server_api.connections import aconnections as aconnections
    from realtime.server_api.connections import anodes as anodes
    from realtime.server_api.connections import around_trip as around_trip
    from realtime.server_api.connections import asubscribers as asubscribers
    from realtime.server_api.connections import connections as connections
    from realtime.server_api.connections import nodes as nodes
    from realtime.server_api.connections import round_trip as round_trip
    from realtime.server_api.connections import subscribers as subscribers
    from realtime.server_api.listening import Heard as Heard
    from realtime.server_api.listening import listen as listen
    from realtime.server_api.maps import Map as Map
    from realtime.server_api.maps import MapChange as MapChange
    from realtime.server_api.maps import MapEntry as MapEntry
    from realtime.server_api.maps import map as map  # noqa: A004
    from realtime.server_api.publishing import abroadcast as abroadcast
    from realtime.server_api.publishing import apublish as apublish
    from realtime.server_api.publishing import apublish_many as apublish_many
    from realtime.server_api.publishing import broadcast as broadcast
    from realtime.server_api.publishing import publish as publish
    from realtime.server_api.publishing import publish_many as publish_many
    from realtime.server_api.queries import achannels as achannels
    from realtime.server_api.queries import ahistory as ahistory
    from realtime.server_api.queries import ahistory_remove as ahistory_remove
    from realtime.server_api.queries import ainfo as ainfo
    from realtime.server_api.queries import aposition as aposition
    from realtime.server_api.queries import apositions as apositions
    from realtime.server_api.queries import apresence as apresence
    from realtime.server_api.queries import apresence_stats as apresence_stats
    from realtime.server_api.queries import channels as channels
    from realtime.server_api.queries import history as history
    from realtime.server_api.queries import history_remove as history_remove
    from realtime.server_api.queries import info as info
    from realtime.server_api.queries import position as position
    from realtime.server_api.queries import positions as positions
    from realtime.server_api.queries import presence as presence
    from realtime.server_api.queries import presence_stats as presence_stats
    from realtime.tokens import observer_token as observer_token
    from realtime.typed.declaring import TypedChannel as TypedChannel
    from realtime.typed.declaring import TypedChannels as TypedChannels
    from realtime.typed.declaring import channel as channel

_NAMES = {
    "engine.nodes": "NodeStatus",
    "errors": "EngineUnavailable Error NotServing",
    "node.reader": "PublicationsLost",
    "server_api.arguments": "Position",
    "server_api.blocks": "ablock ablocked aunblock block blocked unblock",
    "server_api.connecting": (
        "adisconnect arefresh asubscribe aunsubscribe disconnect refresh subscribe unsubscribe"
    ),
    "server_api.connections": (
        "Connection Connections Subscribers aconnections anodes around_trip asubscribers "
        "connections nodes round_trip subscribers"
    ),
    "server_api.listening": "Heard listen",
    "server_api.maps": "Map MapChange MapEntry map",
    "server_api.publishing": "abroadcast apublish apublish_many broadcast publish publish_many",
    "server_api.queries": (
        "achannels ahistory ahistory_remove ainfo aposition apositions apresence "
        "apresence_stats channels history history_remove info position positions presence "
        "presence_stats"
    ),
    "tokens": "observer_token",
    "typed.declaring": "TypedChannel TypedChannels channel",
}
"""Module → its public names."""
_MODULES = {
    name: f"realtime.{module}" for module, names in _NAMES.items() for name in names.split()
}
__all__ = list(_MODULES)


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
