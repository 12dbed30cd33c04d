"""Start the test site as a server process, on a free port, and end it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 30.0
STOP_TIMEOUT = 15.0

SECRET = "a secret that is long enough for HMAC SHA-256"
API_KEY = "the-key-of-the-server-api"

COMMANDS: Mapping[str, tuple[list[str], str]] = {
    "daphne": (
        ["daphne", "-e", "tcp:port={port}:interface=127.0.0.1:backlog=1024"],
        r"Listening on TCP address 127\.0\.0\.1:(\d+)",
    ),
    "uvicorn": (
        ["uvicorn", "--port", "{port}", "--ws", "websockets-sansio"],
        r"running on http://127\.0\.0\.1:(\d+)",
    ),
}
"""Server → its command line, and the line of its log that tells the port."""


class Server:
    """One server process. Options are those of the service, on top of a secret and a key."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any] | None = None,
        *,
        server: str = "daphne",
        environment: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        """`port`: where to listen; 0 for any free port."""
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "config.json"
        defaults = {"token_hmac_secret_key": SECRET, "api_key": API_KEY}
        config.write_text(json.dumps(defaults | dict(options or {})))
        arguments, self._listening = COMMANDS[server]
        self._lines: list[str] = []
        self._port: int | None = None
        self._ready = threading.Event()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                *(argument.format(port=port) for argument in arguments),
                "tests.site.asgi:application",
            ],
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "SERVICE_CONFIG_FILE": str(config),
                "PYTHONUNBUFFERED": "1",
            }
            | dict(environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        if not self._ready.wait(START_TIMEOUT) or self._port is None:
            self._process.kill()
            raise RuntimeError("the server did not start:\n" + self.log)

    def _read_log(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if self._port is None and (match := re.search(self._listening, line)):
                self._port = int(match[1])
                self._ready.set()
        self._ready.set()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        assert self._port is not None
        return self._port

    @property
    def log(self) -> str:
        """Everything the server wrote so far."""
        return "".join(self._lines)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def socket(self) -> str:
        return f"ws://127.0.0.1:{self._port}/connection/websocket"

    def api(self, method: str, **params: Any) -> dict[str, Any]:
        """Run one command of the server API; returns the reply."""
        request = urllib.request.Request(
            f"{self.address}/api",
            json.dumps({"method": method, "params": params}).encode(),
            {"Authorization": f"apikey {API_KEY}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            reply: dict[str, Any] = json.loads(response.read())
            return reply

    def publish(self, channel: str, data: Any) -> None:
        """Publish through the server API."""
        reply = self.api("publish", channel=channel, data=data)
        assert reply == {"result": {}}, reply

    def terminate(self) -> int:
        """Send SIGTERM and wait; returns the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_TIMEOUT)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._process.kill()
        self._process.wait(STOP_TIMEOUT)

    def stop(self) -> None:
        """End the process, the hard way if need be."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reader.join(STOP_TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()


def wait_until(condition: Any, timeout: float = 10.0, what: str = "the condition") -> None:
    """Poll a condition that nothing announces; fails loudly when it does not come true."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true in {timeout} s"
        time.sleep(0.01)
