"""`manage.py realtime` in tests: as a process of its own, and inside of this one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from realtime.config import sources
from realtime.config.reader import InvalidOptions
from realtime.management.commands.realtime import Command
from realtime.serving import serving
from tests.processes import run_python
from tests.server import API_KEY, ROOT, SECRET

TIMEOUT = 60.0

KEYS: Mapping[str, Any] = {"token_hmac_secret_key": SECRET, "api_key": API_KEY}
"""The options that a server of the tests has in any case."""

OPTIONS: dict[str, Any] = {"allowed_origins": ["http://127.0.0.1:*"], "health": True}
"""The options of most services that the doctor visits."""


def run(
    directory: Path,
    options: Mapping[str, Any],
    *arguments: str,
    settings: str = "tests.settings",
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `manage.py realtime` to its end, for a site with these options besides `KEYS`."""
    return run_python(
        ["-m", "django", "realtime", *arguments],
        ROOT,
        {**surroundings(directory, options, settings), **(environment or {})},
        stdin=stdin,
        timeout=TIMEOUT,
    )


def surroundings(
    directory: Path, options: Mapping[str, Any], settings: str = "tests.settings"
) -> dict[str, str]:
    """The environment of a process of a site with these options besides `KEYS`."""
    config = directory / "console.json"
    config.write_text(json.dumps({**KEYS, **options}))
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
    return {**ours, "DJANGO_SETTINGS_MODULE": settings, "SERVICE_CONFIG_FILE": str(config)}


def run_here(options: Mapping[str, Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    """As `run`, without a process: the command line is read and answered in this one.

    On a thread of its own, for tests whose event loop is at work. The functions that other
    tests registered as hooks are there.
    """

    def answer() -> int:
        try:
            Command().run_from_argv(["manage.py", "realtime", *arguments])
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    output, errors = StringIO(), StringIO()
    with (
        override_settings(REALTIME={**KEYS, **options}),
        redirect_stdout(output),
        redirect_stderr(errors),
        ThreadPoolExecutor(1) as thread,
    ):
        try:
            status = thread.submit(answer).result(TIMEOUT)
        finally:
            with suppress(InvalidOptions):
                config = sources.current()
                if (bus := serving.engines(config).redis(config)) is not None:
                    bus.close_blocking()
    return subprocess.CompletedProcess(arguments, status, output.getvalue(), errors.getvalue())


def call(*arguments: str) -> str:
    """What the command prints, in this process; raises CommandError."""
    output = StringIO()
    call_command("realtime", *arguments, stdout=output)
    return output.getvalue().removesuffix("\n")


def call_json(*arguments: str) -> Any:
    """The value that the command prints with --json; it must succeed."""
    return json.loads(call(*arguments, "--json"))


Findings = Mapping[str, Mapping[str, str]]
"""Name of a check of the doctor → its status, what was found, and the advice."""


def findings(output: str) -> Findings:
    """What the doctor found, from what it printed with --json."""
    return {finding["check"]: finding for finding in json.loads(output)["checks"]}


def examine(options: Mapping[str, Any], *arguments: str) -> Findings:
    """Run the doctor in this process; its exit status must fit what it found."""
    return _judged(run_here(options, "doctor", "--json", *arguments))


def examine_alone(directory: Path, options: Mapping[str, Any], *arguments: str) -> Findings:
    """As `examine`, in a process of its own, where nobody registered hooks."""
    return _judged(run(directory, options, "doctor", "--json", *arguments))


def _judged(finished: subprocess.CompletedProcess[str]) -> Findings:
    assert "Traceback" not in finished.stderr, finished.stderr
    found = findings(finished.stdout)
    failed = any(finding["status"] == "fail" for finding in found.values())
    assert finished.returncode == int(failed)
    assert json.loads(finished.stdout)["ok"] is not failed
    return found


def look(*arguments: str) -> Findings:
    """What the doctor in this process finds, whether checks fail or not."""
    output = StringIO()
    with suppress(CommandError):  # some check failed, or there is no output to read
        call_command("realtime", "doctor", "--json", *arguments, stdout=output)
    return findings(output.getvalue())


def visit(url: str, *arguments: str) -> Findings:
    """What the doctor in this process finds at a URL."""
    return look("--url", url, *arguments)


def statuses(found: Findings, *names: str) -> list[str]:
    """The statuses of these checks."""
    return [found[name]["status"] for name in names]


Change = Callable[[bytes], bytes]


class FrontProxy:
    """A proxy in front of servers: takes them in turn, and may change a request's head."""

    def __init__(self, ports: Sequence[int], change: Change | None, delay: float) -> None:
        """
        Args:
            ports: of the servers behind it.
            change: the head of the first HTTP request of a connection → what is passed on.
            delay: seconds everything takes on its way back.
        """
        self._ports = ports
        self._change = change
        self._delay = delay
        self._turn = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        # a shutdown wakes the thread that accepts; a close alone does not
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(TIMEOUT)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                port = self._ports[self._turn % len(self._ports)]
                self._turn += 1
                threading.Thread(target=self._serve, args=(near, port), daemon=True).start()

    def _serve(self, near: socket.socket, port: int) -> None:
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            if self._change is not None:
                head = b""
                while b"\r\n\r\n" not in head:
                    if not (data := near.recv(65536)):
                        return
                    head += data
                far.sendall(self._change(head))
            back = threading.Thread(target=_pump, args=(far, near, self._delay), daemon=True)
            back.start()
            _pump(near, far)
            back.join(TIMEOUT)


def _pump(source: socket.socket, target: socket.socket, delay: float = 0) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            time.sleep(delay)  # the distance itself, nothing waits for it to pass
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def front_proxy(
    *ports: int, change: Change | None = None, delay: float = 0
) -> Iterator[FrontProxy]:
    """A proxy for the length of a `with` block."""
    proxy = FrontProxy(ports, change, delay)
    try:
        yield proxy
    finally:
        proxy.stop()


@contextmanager
def answering(status: int, headers: dict[str, str], upgrade: int | None = None) -> Iterator[str]:
    """An HTTP server that gives every request the same answer; its address.

    `upgrade`: status of its answer to those who ask for a WebSocket, if it is another one.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response((upgrade or status) if "Upgrade" in self.headers else status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        do_POST = do_GET  # noqa: N815, the name is http.server's

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def without_header(*names: str) -> Change:
    """Drops headers of a request, as a proxy may."""
    dropped = tuple(f"{name.lower()}:".encode() for name in names)

    def change(head: bytes) -> bytes:
        lines = head.split(b"\r\n")
        return b"\r\n".join(line for line in lines if not line.lower().startswith(dropped))

    return change
