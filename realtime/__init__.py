"""Real-time messaging inside a Django site: publish/subscribe with presence and recovery.

    from realtime import publish

    publish("chat:lobby", {"text": "hi"})

The functions are in `realtime.service`; they are loaded at first use, so that importing a
pure module of this package needs neither Django nor settings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from realtime.errors import EngineUnavailable, Error, NotServing
    from realtime.service import (
        abroadcast,
        achannels,
        adisconnect,
        ahistory,
        ahistory_remove,
        ainfo,
        apresence,
        apresence_stats,
        apublish,
        apublish_many,
        aunsubscribe,
        broadcast,
        channels,
        disconnect,
        history,
        history_remove,
        info,
        presence,
        presence_stats,
        publish,
        publish_many,
        unsubscribe,
    )

__all__ = [
    "EngineUnavailable",
    "Error",
    "NotServing",
    "abroadcast",
    "achannels",
    "adisconnect",
    "ahistory",
    "ahistory_remove",
    "ainfo",
    "apresence",
    "apresence_stats",
    "apublish",
    "apublish_many",
    "aunsubscribe",
    "broadcast",
    "channels",
    "disconnect",
    "history",
    "history_remove",
    "info",
    "presence",
    "presence_stats",
    "publish",
    "publish_many",
    "unsubscribe",
]

_FROM_ERRORS = ("EngineUnavailable", "Error", "NotServing")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module("realtime.errors" if name in _FROM_ERRORS else "realtime.service")
    value: object = getattr(module, name)
    return value
