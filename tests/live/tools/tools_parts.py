"""`manage.py realtime` beside a running service, over HTTP or through Redis."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.live.tools.command import run, run_here
from tests.server import Server

API_OPTIONS: dict[str, Any] = {
    "presence": True,
    "history_size": 5,
    "history_lifetime": 60,
    "namespaces": [
        {"name": "off"},
        {"name": "open", "publish": True, "history_size": 5, "history_lifetime": 60},
        {"name": "seats", "map": "recoverable"},
    ],
}
PREFIX = "console"


class Console:
    """`manage.py realtime` of a site whose service runs, and the way to that service."""

    def __init__(self, server: Server, options: dict[str, Any], way: list[str]) -> None:
        self.server = server
        self._options = options
        self._way = way

    def run_alone(self, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in a process of its own."""
        return run(directory, self._options, *arguments, *self._way)

    def text(self, *arguments: str) -> str:
        """What it prints; it must succeed."""
        finished = run_here(self._options, *arguments, *self._way)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.removesuffix("\n")

    def json(self, *arguments: str) -> Any:
        """The value it prints with --json; it must succeed."""
        return json.loads(self.text(*arguments, "--json"))
