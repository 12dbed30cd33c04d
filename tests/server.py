"""Processes that serve, on free ports: any one, and the test site with its options."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.certificates import write_certificate
from tests.ports import free_port
from tests.processes import start_python

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 120.0
STOP_TIMEOUT = 60.0
TIMEOUT = 60.0
"""Seconds after which what does not come is taken for missing; on a busy machine much takes long.

It is less than what the service does by itself after 25 seconds: pings, renewals of presence.
"""

SECRET = "a secret that is long enough for HMAC SHA-256"
API_KEY = "the-key-of-the-server-api"

COMMANDS: Mapping[str, tuple[list[str], str]] = {
    "daphne": (
        ["daphne", "-e", "tcp:port={port}:interface=127.0.0.1:backlog=1024"],
        r"Listening on TCP address 127\.0\.0\.1:(\d+)",
    ),
    "daphne-tls": (
        [
            "daphne",
            "-e",
            "ssl:port={port}:interface=127.0.0.1"
            ":privateKey={directory}/key.pem:certKey={directory}/certificate.pem",
        ],
        r"Listening on TCP address 127\.0\.0\.1:(\d+)",
    ),
    "realtime": (
        ["realtime", "--port", "{port}"],
        r"Listening on TCP address 127\.0\.0\.1:(\d+)",
    ),
    "granian": (
        ["granian", "--interface", "asgi", "--port", "{port}"],
        r"Listening at: http://127\.0\.0\.1:(\d+)",
    ),
    "gunicorn": (
        ["gunicorn", "--bind", "127.0.0.1:{port}", "-k", "uvicorn_worker.UvicornWorker"],
        r"Listening at: http://127\.0\.0\.1:(\d+)",
    ),
    "gunicorn-asgi": (
        ["gunicorn", "--bind", "127.0.0.1:{port}", "--worker-class", "asgi"],
        r"Listening at: http://127\.0\.0\.1:(\d+)",
    ),
    "hypercorn": (
        ["hypercorn", "--graceful-timeout", "0", "--bind", "127.0.0.1:{port}"],
        r"Running on http://127\.0\.0\.1:(\d+)",
    ),
    "uvicorn": (
        ["uvicorn", "--port", "{port}", "--ws", "websockets-sansio"],
        r"running on http://127\.0\.0\.1:(\d+)",
    ),
    "uvicorn-h11": (
        ["uvicorn", "--port", "{port}", "--ws", "websockets-sansio", "--http", "h11"],
        r"running on http://127\.0\.0\.1:(\d+)",
    ),
    # h11 counts a head only when it comes in several parts
    "uvicorn-long-heads": (
        ["uvicorn", "--port", "{port}", "--h11-max-incomplete-event-size", "65536"],
        r"running on http://127\.0\.0\.1:(\d+)",
    ),
}
"""Server → its command line, and the line of its log that tells the port."""


class ListeningProcess:
    """A process that serves, whose output is kept; it listens when it is made."""

    def __init__(
        self,
        arguments: Sequence[str],
        listening: str,
        environment: Mapping[str, str],
        *,
        cwd: Path = ROOT,
    ) -> None:
        """
        Args:
            arguments: what follows `python`.
            listening: pattern of the line of its output that tells the port.
            environment: all of it.

        Raises:
            RuntimeError: it did not start; the text has what it wrote.
        """
        # a file and no pipe: what a process wrote before it answered is in it when that arrives
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # `stop` closes it
        self._log = ""
        """Everything it wrote, after its end."""
        with open(os.devnull, "rb") as nothing:
            self._process = start_python(
                arguments,
                cwd,
                {**environment, "PYTHONUNBUFFERED": "1"},
                (nothing, self._output, self._output),
            )
        deadline = time.monotonic() + START_TIMEOUT
        while (found := re.search(listening, self.log.rpartition("\n")[0])) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("the process did not start:\n" + self.log)
            time.sleep(0.01)
        self.port = int(found[1])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything the process wrote so far."""
        if self._output.closed:
            return self._log
        descriptor = self._output.fileno()
        written = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        return written.decode(errors="replace")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> str:
        """The WebSocket endpoint."""
        return f"ws{self.address.removeprefix('http')}/connection/websocket"

    def wait(self) -> int:
        """Wait for the end of a process that was sent a signal; returns the exit status."""
        return self._process.wait(STOP_TIMEOUT)

    def terminate(self) -> int:
        """Send SIGTERM and wait; returns the exit status."""
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        """Send SIGKILL to it and what it started, and wait."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """End the process, the hard way if need be; returns the exit status."""
        if self._process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.terminate()
        self.discard()  # also what is left of a server with several processes
        return self.wait()

    def discard(self) -> None:
        """Be done with it, where nobody looks at how it ends: that is quicker."""
        if self._output.closed:
            return  # its number may be another process's by now
        self.kill()
        self._log = self.log
        self._output.close()


class Server(ListeningProcess):
    """One server process. Options are those of the service, on top of a secret and a key."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any] | None = None,
        *,
        server: str = "daphne",
        environment: Mapping[str, str] | None = None,
        port: int = 0,
        application: str = "tests.site.asgi:application",
        cwd: Path = ROOT,
        arguments: Sequence[str] = (),
    ) -> None:
        """
        Args:
            port: where to listen; 0 for any free port.
            cwd: the tree whose code it runs.
            arguments: more of them for its command line.
        """
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "config.json"
        defaults = {"token_hmac_secret_key": SECRET, "api_key": API_KEY}
        if cwd == ROOT:  # an older version does not know this option
            defaults["client_command_rates"] = ""  # tests send as fast as they can
        config.write_text(json.dumps(defaults | dict(options or {})))
        command, listening = COMMANDS[server]
        self._tls = server.endswith("-tls")
        if self._tls:
            write_certificate(directory)
        if server == "granian" and port == 0:
            port = free_port()  # it does not tell which one it chose
        command = [argument.format(port=port, directory=directory) for argument in command]
        super().__init__(
            ["-m", *command, *arguments, application],
            listening,
            os.environ
            | {"DJANGO_SETTINGS_MODULE": "tests.settings", "SERVICE_CONFIG_FILE": str(config)}
            | dict(environment or {}),
            cwd=cwd,
        )
        wait_until(self._accepts, START_TIMEOUT, "a listening server")

    def _accepts(self) -> bool:
        """Some servers say that they listen before they do."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    @property
    def address(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def api(self, method: str, **params: Any) -> dict[str, Any]:
        """Run one command of the server API; returns the reply."""
        request = urllib.request.Request(
            f"{self.address}/api",
            json.dumps({"method": method, "params": params}).encode(),
            {"Authorization": f"apikey {API_KEY}", "Content-Type": "application/json"},
        )
        # the certificate is made anew for every server
        tls = ssl._create_unverified_context() if self._tls else None
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=tls) as response:
            reply: dict[str, Any] = json.loads(response.read())
            return reply

    def publish(self, channel: str, data: Any) -> None:
        """Publish through the server API."""
        reply = self.api("publish", channel=channel, data=data)
        assert reply == {"result": {}}, reply


def wait_until(condition: Any, timeout: float = TIMEOUT, what: str = "the condition") -> None:
    """Poll a condition that nothing announces; fails loudly when it does not come true.

    A condition that takes long is asked less often, at least four times a second.
    """
    began = time.monotonic()
    deadline = began + timeout
    while not condition():
        ended = time.monotonic()
        assert ended < deadline, f"{what} did not come true in {timeout} s"
        time.sleep(min(max(0.01, 4 * (ended - began)), 0.25))
        began = time.monotonic()
