"""A command that goes on, as a process whose output is a pipe or a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.live.tools.command import TIMEOUT, surroundings
from tests.server import ROOT


class GoingOn:
    """`manage.py realtime` until the end of a `with` block."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any],
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        output: int = subprocess.PIPE,
    ) -> None:
        """
        Args:
            directory: for its files.
            options: those of the site besides `KEYS`.
            arguments: of the command.
            environment: more of it.
            output: a file descriptor in place of a pipe.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", "django", "realtime", *arguments],
            cwd=ROOT,
            env={**surroundings(directory, options), **(environment or {})},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._patience = threading.Timer(TIMEOUT, self._process.kill)
        self._patience.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._patience.cancel()
        self._process.kill()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process.wait()

    def line(self) -> str:
        """The next line that it writes."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.endswith("\n"), self.ended()
        return line.removesuffix("\n")

    def has_output(self) -> bool:
        """Whether it has written something that was not read, after a moment."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0.1)[0])

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def close_output(self) -> None:
        """Close the pipe that it writes into."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def ended(self) -> tuple[int, str]:
        """Wait until it ends; its exit status, and what it wrote to standard error."""
        assert self._process.stderr is not None
        errors = self._process.stderr.read()
        return self._process.wait(), errors


class Terminal(GoingOn):
    """As `GoingOn`, with a terminal for its output."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any],
        *arguments: str,
        columns: int,
        lines: int,
    ) -> None:
        """`columns`, `lines`: the size of the terminal."""
        near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._terminal = os.fdopen(near, "rb", buffering=0)
        self._written = b""
        # the size is read from the standard output of Python, unless the environment has one
        environment = {"COLUMNS": "0", "LINES": "0"}
        super().__init__(directory, options, *arguments, environment=environment, output=far)
        os.close(far)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._terminal.close()

    def screen(self) -> list[str]:
        """The lines of the next screen, which it must draw over the one before."""
        home, clear_line, clear_rest = b"\x1b[H", b"\x1b[K", b"\x1b[J"
        while clear_rest not in self._written:
            self._written += self._terminal.read(65536)
        drawn, _, self._written = self._written.partition(clear_rest)
        drawn = drawn.removeprefix(b"\r\n")
        assert drawn.startswith(home), drawn
        lines = drawn.removeprefix(home).split(b"\r\n")
        assert all(line.endswith(clear_line) for line in lines), drawn
        return [line.removesuffix(clear_line).decode() for line in lines]
