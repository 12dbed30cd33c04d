"""Run a site by any command line that serves it, for tests of what `Server` keeps fixed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.server import ROOT, START_TIMEOUT, STOP_TIMEOUT

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


class SiteProcess:
    """A process that serves a site; the address is known when it is made."""

    def __init__(
        self, arguments: list[str], listening: str, environment: Mapping[str, str]
    ) -> None:
        self._lines: list[str] = []
        self._port = ""
        self._listens = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"} | dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=[listening], daemon=True)
        self._reader.start()
        if not self._listens.wait(START_TIMEOUT) or not self._port:
            self.stop()
            raise RuntimeError("the site was not served:\n" + self.log)

    def _read(self, listening: str) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if not self._port and (match := re.search(listening, line)):
                self._port = match[1]
                self._listens.set()
        self._listens.set()

    @property
    def log(self) -> str:
        """Everything the process wrote so far."""
        return "".join(self._lines)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def socket(self) -> str:
        return f"ws://127.0.0.1:{self._port}/connection/websocket"

    def stop(self) -> int:
        """Send SIGTERM, and SIGKILL when that does not help; returns the exit status."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT)
        self._reader.join(STOP_TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.returncode


@contextmanager
def site(
    arguments: list[str], listening: str, environment: Mapping[str, str]
) -> Iterator[SiteProcess]:
    """A site for the length of a `with` block."""
    process = SiteProcess(arguments, listening, environment)
    try:
        yield process
    finally:
        process.stop()
