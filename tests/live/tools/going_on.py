"""A command that goes on, as a process whose output is a pipe or a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.live.tools.command import TIMEOUT, surroundings
from tests.processes import start_python
from tests.server import ROOT


class GoingOn:
    """`manage.py realtime` until the end of a `with` block."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any],
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        output: int | None = None,
    ) -> None:
        """
        Args:
            directory: for its files.
            options: those of the site besides `KEYS`.
            arguments: of the command.
            environment: more of it.
            output: a file descriptor in place of a pipe.
        """
        lines, told = os.pipe()
        errors, failed = os.pipe()
        self._lines, self._errors = os.fdopen(lines), os.fdopen(errors)
        with (
            open(os.devnull, "rb") as stdin,
            open(told, "wb") as pipe,
            open(failed, "wb") as stderr,
            nullcontext(pipe) if output is None else open(output, "wb", closefd=False) as stdout,
        ):
            self._process = start_python(
                ["-m", "django", "realtime", *arguments],
                ROOT,
                {**surroundings(directory, options), **(environment or {})},
                (stdin, stdout, stderr),
            )
        self._patience = threading.Timer(TIMEOUT, self._kill)
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
        self._kill()
        self._process.wait()
        self._lines.close()
        self._errors.close()

    def line(self) -> str:
        """The next line that it writes."""
        line = self._lines.readline()
        assert line.endswith("\n"), self.ended()
        return line.removesuffix("\n")

    def has_output(self) -> bool:
        """Whether it has written something that was not read, after a moment."""
        return bool(select.select([self._lines], [], [], 0.1)[0])

    def send(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self._process.pid, number)

    def close_output(self) -> None:
        """Close the pipe that it writes into."""
        self._lines.close()

    def ended(self) -> tuple[int, str]:
        """Wait until it ends; its exit status, and what it wrote to standard error."""
        errors = self._errors.read()
        return self._process.wait(), errors

    def _kill(self) -> None:
        if self._process.poll() is None:
            self.send(signal.SIGKILL)


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
