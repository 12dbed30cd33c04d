"""Processes that are told what to do line by line, and answer with figures: the load generators."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

Figures = dict[str, float]

GRACE = 45.0
"""Seconds a process may take on top of what a command says."""


class LoadError(Exception):
    """A process did not do what it was told."""


@dataclass(frozen=True)
class Script:
    """What subscribers and the publisher say to one kind of server."""

    path: str = "/"
    greet: Sequence[str] = ()
    """Sent after the handshake."""
    other_greet: Sequence[str] = ()
    """Sent by every second connection instead; must lead to as many messages."""
    ready: int = 1
    """Messages after which a connection is ready."""
    publisher_path: str = ""
    publisher_greet: Sequence[str] = ()
    publisher_ready: int = 0
    publication: str = ""
    http: str = ""
    """Path to POST to; connections are then plain HTTP."""
    headers: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """Command line options of the loader."""
        options = [
            ("--path", self.path),
            ("--ready", str(self.ready)),
            *(("--greet", text) for text in self.greet),
            *(("--publisher-greet", text) for text in self.publisher_greet),
            *(("--other-greet", text) for text in self.other_greet),
            ("--publisher-path", self.publisher_path),
            ("--publisher-ready", str(self.publisher_ready)),
            *((("--http", self.http),) if self.http else ()),
            *(("--header", line) for line in self.headers),
        ]
        return [word for option in options for word in option]


class Talker:
    """A process that takes commands on stdin and answers each with a line of JSON."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | dict(environment or {}),
            cwd=directory,
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _do(self, command: str, seconds: float = 0.0) -> Figures:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise LoadError(f"ended before: {command}") from None
        deadline = time.monotonic() + seconds + GRACE
        line = b""
        while not line.endswith(b"\n"):
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise LoadError(f"no answer to: {command}")
            part = self._process.stdout.readline()
            if not part:
                raise LoadError(f"ended at: {command}")
            line += part
        figures: Figures = json.loads(line)
        if "error" in figures:
            raise LoadError(f"{figures['error']}: {command}")
        return figures

    def stop(self) -> None:
        """End the process."""
        self._selector.close()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class Loader(Talker):
    """One load generator (`loader/load.c`) for one service. Times are seconds unless a name says
    otherwise."""

    def __init__(self, program: Path, servers: Sequence[tuple[int, int]], script: Script) -> None:
        """`servers`: port and process ID of each server of the service."""
        addresses = (
            word for port, pid in servers for word in ("--port", str(port), "--pid", str(pid))
        )
        super().__init__([str(program), *addresses, *script.arguments()])

    def connect(self, number: int) -> Figures:
        """Open that many more connections; waits until they are ready."""
        figures = self._do(f"connect {number}", number / 20)
        if not figures["opened"]:
            raise LoadError("no connection became ready")
        return figures

    def close(self) -> None:
        """Close every connection."""
        self._do("close")

    def idle(self, seconds: float) -> Figures:
        """Leave the connections alone; CPU (cores) and memory (KiB) of the server meanwhile."""
        return self._do(f"idle {seconds}", seconds)

    def say(self, text: str, modulus: int = 1) -> None:
        """Have every connection send a command and wait for its reply."""
        figures = self._do(f"say {modulus} {text}")
        if figures["said"] != figures["answered"]:
            raise LoadError(f"{figures['answered']:.0f} of {figures['said']:.0f} answered {text}")

    def publication(self, deliveries: float, text: str, modulus: int = 1) -> None:
        """What is published from now on, and how many deliveries each publication causes."""
        figures = self._do(f"publication {deliveries} {modulus} {text}", 20)
        if not figures["ready"]:
            raise LoadError("the publisher could not connect")

    def closed(self, window: int, warm: float, seconds: float) -> Figures:
        """Publish with `window` publications outstanding."""
        return self._do(f"closed {window} {warm} {seconds}", warm + seconds)

    def open(self, rate: float, warm: float, seconds: float) -> Figures:
        """Publish `rate` times a second, whatever the server does."""
        return self._do(f"open {rate} {warm} {seconds}", warm + seconds)

    def drain(self, seconds: float) -> float:
        """Wait for what is outstanding; returns how many deliveries never came."""
        return self._do(f"drain {seconds}", seconds)["missing"]

    def echo(self, text: str, warm: float, seconds: float, repeat: int = 1) -> Figures:
        """Have every connection send a request whenever its last one is answered."""
        figures = self._do(f"echo {repeat} {warm} {seconds} {text}", warm + seconds)
        if figures["bad"]:
            raise LoadError(f"{figures['bad']:.0f} bad replies")
        return figures
