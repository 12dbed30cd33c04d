"""Start daphne with settings for many connections.

- A listen backlog of 1024: with Twisted's 50, clients that reconnect all at once wait for a second
  instead of milliseconds.
- uvloop, if it is installed.
- No limit on the age of a connection; daphne's own is a day.
- No access log, because query strings may contain the API key. `--verbosity 1` turns it on.
- A garbage collector that skips what was loaded at the start, see `freeze_gc`.

Nothing here is needed for correctness: plain `daphne mysite.asgi:application` works, too.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Sequence

from realtime.transports.servers.garbage_collector import freeze_gc

LISTEN_BACKLOG = 1024
PING_INTERVAL = 25
"""Seconds without incoming frames after which a client is pinged."""
PING_TIMEOUT = 30


def main(arguments: Sequence[str]) -> None:
    """Serve an application until a signal ends it.

    Args:
        arguments: `[--host HOST] [--port PORT] application`, and any other argument of daphne's
            command line.
    """
    parser = argparse.ArgumentParser(prog="python -m realtime", description=main.__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options, rest = parser.parse_known_args(arguments)
    _use_uvloop()
    # Twisted installs its reactor at import, on the loop of the policy in force.
    cli = importlib.import_module("daphne.cli")
    endpoint = f"tcp:port={options.port}:interface={_escape(options.host)}:backlog={LISTEN_BACKLOG}"
    importlib.import_module("twisted.internet.reactor").callWhenRunning(freeze_gc)
    cli.CommandLineInterface().run(
        [
            *("--endpoint", endpoint),
            *("--ping-interval", str(PING_INTERVAL)),
            *("--ping-timeout", str(PING_TIMEOUT)),
            *("--websocket_timeout", "-1"),
            *("--verbosity", "0"),
            *rest,
        ]
    )


def _use_uvloop() -> bool:
    """Use uvloop for new event loops. Return False if it is not installed."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return False
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    return True


def _escape(host: str) -> str:
    """Escape a host for Twisted's endpoint syntax, in which colons separate fields."""
    return host.replace("\\", "\\\\").replace(":", "\\:")
