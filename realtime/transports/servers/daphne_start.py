"""How daphne is started, alone and in each worker."""

from __future__ import annotations

import asyncio
import importlib

PING_INTERVAL = 25
"""Seconds without incoming frames after which a client is pinged."""
PING_TIMEOUT = 30
CONNECT_TIMEOUT = 20
"""Seconds that a handshake may take, from its head to the answer of the application. It waits while
many come at once; daphne's own limit is five seconds."""
DAPHNE_ARGUMENTS = (
    *("--ping-interval", str(PING_INTERVAL)),
    *("--ping-timeout", str(PING_TIMEOUT)),
    *("--websocket_timeout", "-1"),
    *("--websocket_connect_timeout", str(CONNECT_TIMEOUT)),
    *("--verbosity", "0"),
)
"""What an operator may override."""


def use_uvloop() -> bool:
    """Use uvloop for new event loops. Return False if it is not installed."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return False
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    return True
