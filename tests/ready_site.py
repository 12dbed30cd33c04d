"""Start the ready site as a visitor would: `manage.py migrate`, then `manage.py serve`."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.server import ROOT, START_TIMEOUT, STOP_TIMEOUT


class ReadySite:
    """One `manage.py serve` with its data in a directory of its own."""

    def __init__(self, directory: Path, *, cwd: Path = ROOT) -> None:
        self.directory = directory
        self.port = free_port()
        self._lines: list[str] = []
        self._ready = threading.Event()
        manage(directory, "migrate", "--verbosity", "0")
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "serve", "--port", str(self.port)],
            cwd=cwd,
            env=environment(directory),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        if not self._ready.wait(START_TIMEOUT) or self._process.poll() is not None:
            self.stop()
            raise RuntimeError("the site did not start:\n" + self.output)

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if f"Listening on TCP address 127.0.0.1:{self.port}" in line:
                self._ready.set()
        self._ready.set()

    @property
    def output(self) -> str:
        """Everything the site wrote so far."""
        return "".join(self._lines)

    def find(self, pattern: str) -> str:
        """The first group of a pattern in the output; it must be there."""
        match = re.search(pattern, self.output, re.MULTILINE)
        assert match, f"{pattern} is not in the output:\n{self.output}"
        return match[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> str:
        return f"ws://127.0.0.1:{self.port}/connection/websocket"

    def secret(self, name: str) -> str:
        """A secret the site made for itself: api_key, token_hmac_secret_key."""
        return (self.directory / name).read_text(encoding="ascii").strip()

    def api(self, *commands: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run commands of the server API in one request; returns their replies, all good."""
        request = urllib.request.Request(
            f"{self.address}/api",
            "\n".join(json.dumps(command) for command in commands).encode(),
            {
                "Authorization": f"apikey {self.secret('api_key')}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            replies: list[dict[str, Any]] = [json.loads(line) for line in response]
        assert not any("error" in reply for reply in replies), replies
        return replies

    def publish(self, channel: str, *data: Any) -> None:
        """Publish each of the data through the server API."""
        self.api(
            *({"method": "publish", "params": {"channel": channel, "data": each}} for each in data)
        )

    @property
    def password(self) -> str:
        """The operator's password, as it was printed."""
        return self.find(r"as operator, password (\S+)$")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        """Wait for the end of a process that was sent a signal."""
        self._process.wait(STOP_TIMEOUT)

    def stop(self) -> None:
        """End the process, the hard way if need be."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self.wait()
        self._reader.join(STOP_TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()


def environment(directory: Path) -> dict[str, str]:
    """This process's environment, without what configures another site or service."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DJANGO_", "SERVICE_"))
    }
    return kept | {"DJANGO_DATA_DIR": str(directory), "PYTHONUNBUFFERED": "1"}


def manage(
    directory: Path, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a management command of the ready site to its end."""
    finished = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert finished.returncode == 0 or not check, finished.stdout + finished.stderr
    return finished


def free_port() -> int:
    """A port nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
