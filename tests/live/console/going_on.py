"""A command that goes on, as a process whose output is a pipe."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.live.console.command import TIMEOUT, surroundings
from tests.server import ROOT


class GoingOn:
    """`manage.py realtime` until the end of a `with` block."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, Any],
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`options`: those of the site besides `KEYS`."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "django", "realtime", *arguments],
            cwd=ROOT,
            env={**surroundings(directory, options), **(environment or {})},
            stdout=subprocess.PIPE,
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
            assert stream is not None
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
