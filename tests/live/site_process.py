"""Run a site by any command line that serves it, for tests of what `Server` keeps fixed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.server import ListeningProcess

LISTENING = {
    "daphne": r"Listening on TCP address 127\.0\.0\.1:(\d+)",
    "uvicorn": r"running on http://127\.0\.0\.1:(\d+)",
}
"""Server → the line of its log that tells the port."""

COMMANDS = {
    "daphne": ["-m", "daphne", "-e", "tcp:port=0:interface=127.0.0.1"],
    "uvicorn": ["-m", "uvicorn", "--port", "0", "--ws", "websockets-sansio"],
}
"""Server → the command line without the application."""


class SiteProcess(ListeningProcess):
    """A process that serves a site; the address is known when it is made."""

    def __init__(
        self, arguments: list[str], listening: str, environment: Mapping[str, str]
    ) -> None:
        super().__init__(arguments, listening, os.environ | dict(environment))


@contextmanager
def site(
    arguments: list[str], listening: str, environment: Mapping[str, str]
) -> Iterator[SiteProcess]:
    """A site for the length of a `with` block."""
    process = SiteProcess(arguments, listening, environment)
    try:
        yield process
    finally:
        process.discard()
