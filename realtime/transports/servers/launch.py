"""Start daphne with settings for many connections.

- A listen backlog of 1024: with Twisted's 50, clients that reconnect all at once wait for a second
  instead of milliseconds.
- uvloop, if it is installed.
- No limit on the age of a connection; daphne's own is a day.
- No access log, because query strings may contain the API key. `--verbosity 1` turns it on.
- With `--workers`, several processes on one port, see `supervisor`.
- A garbage collector that skips what was loaded at the start, see `freeze_gc`.

Nothing here is needed for correctness: plain `daphne mysite.asgi:application` works, too.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from realtime.transports.servers.daphne_start import DAPHNE_ARGUMENTS, use_uvloop
from realtime.transports.servers.garbage_collector import freeze_gc
from realtime.transports.servers.listening import (
    LISTEN_BACKLOG,
    UNIX_MODE,
    CannotListen,
    listen_at_path,
    listen_on_port,
    remove_path,
)
from realtime.transports.servers.supervisor import Supervisor


def main(arguments: Sequence[str]) -> int:
    """Serve an application until a signal ends it. Return the exit status.

    Args:
        arguments: `[--host HOST] [--port PORT | --uds PATH] [--workers N] application`, and any
            other argument of daphne's command line.
    """
    options, rest = parser().parse_known_args(arguments)
    if options.workers is None and options.uds is None:
        _serve_alone(options.host, options.port, rest)
        return 0
    try:
        if options.uds is None:
            listener = listen_on_port(options.host, options.port)
        else:
            listener = listen_at_path(options.uds, options.uds_mode)
    except CannotListen as error:
        parser().error(str(error))
    try:
        if options.workers is None:
            # imported after the arguments were read: it loads the service
            from realtime.transports.servers import worker

            worker.serve(listener, rest, worker.Alone())
            return 0
        return _supervise(listener, options.workers, rest)
    finally:
        if options.uds is not None:
            remove_path(options.uds, listener)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments that are ours; others are daphne's."""
    made = argparse.ArgumentParser(
        prog="python -m realtime",
        description="Serve an application until a signal ends it. Other arguments go to daphne.",
    )
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=8000)
    made.add_argument("--uds", type=Path, metavar="PATH", help="listen on a Unix socket instead")
    made.add_argument(
        "--uds-mode",
        type=_mode,
        default=UNIX_MODE,
        metavar="MODE",
        help="permissions of that socket, octal; default: 660",
    )
    made.add_argument(
        "--workers",
        type=_number,
        metavar="N",
        help="processes that share the port, under a supervisor; needs Redis or PostgreSQL",
    )
    return made


def _serve_alone(host: str, port: int, arguments: Sequence[str]) -> None:
    """Have daphne itself listen on a port."""
    use_uvloop()
    # Twisted installs its reactor at import, on the loop of the policy in force.
    cli = importlib.import_module("daphne.cli")
    endpoint = f"tcp:port={port}:interface={_escape(host)}:backlog={LISTEN_BACKLOG}"
    importlib.import_module("twisted.internet.reactor").callWhenRunning(freeze_gc)
    cli.CommandLineInterface().run(["--endpoint", endpoint, *DAPHNE_ARGUMENTS, *arguments])


def _supervise(listener: socket.socket, number: int, arguments: Sequence[str]) -> int:
    """Run workers until a signal. Return the exit status.

    The site is loaded by the workers alone: so each restart loads it anew.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    return asyncio.run(Supervisor(listener, number, arguments).run())


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("one process at least")
    return int(text)


def _mode(text: str) -> int:
    if not re.fullmatch("0?[0-7]{3}", text):
        raise argparse.ArgumentTypeError("three octal digits, such as 660")
    return int(text, 8)


def _escape(host: str) -> str:
    """Escape a host for Twisted's endpoint syntax, in which colons separate fields."""
    return host.replace("\\", "\\\\").replace(":", "\\:")
