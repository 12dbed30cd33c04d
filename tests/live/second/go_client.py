"""The published Go client, driven from Python: `tests/go/main.go` says how.

async with open_go(program, url, token="...", protobuf=True) as client:
    await client.call("connect")
    await client.event("connected")
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.processes import ROOT

SOURCE = ROOT / "tests" / "go"
TIMEOUT = 20.0


def build(directory: Path) -> Path:
    """Compile the program into a directory; returns its path."""
    program = directory / "client"
    built = subprocess.run(
        ["go", "build", "-buildvcs=false", "-o", str(program), "."],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return program


class GoClient:
    """One client object in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._unread: list[dict[str, Any]] = []

    async def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Run a command; returns its answer, which has `error` where it failed."""
        self.say(do, **arguments)
        return await self.event("answer")

    def say(self, do: str, **arguments: Any) -> None:
        """Send a command that has no answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")

    async def event(self, name: str, channel: str | None = None) -> dict[str, Any]:
        """Return the next event of this name, and of this channel if one is given."""

        def fits(event: dict[str, Any]) -> bool:
            return event["event"] == name and channel in (None, event.get("channel"))

        async with asyncio.timeout(TIMEOUT):
            while True:
                for number, event in enumerate(self._unread):
                    if fits(event):
                        return self._unread.pop(number)
                assert self._process.stdout is not None
                line = await self._process.stdout.readline()
                assert line, f"the program has ended; it told {self._unread}"
                self._unread.append(json.loads(line))

    async def publications(self, channel: str, number: int) -> list[Any]:
        """Return the data of the next publications of a channel."""
        return [(await self.event("publication", channel))["data"] for _ in range(number)]

    def unread(self, name: str) -> list[dict[str, Any]]:
        """Return the events of this name that were told and not asked for."""
        return [event for event in self._unread if event["event"] == name]


@asynccontextmanager
async def open_go(
    program: Path, url: str, *, token: str, protobuf: bool
) -> AsyncIterator[GoClient]:
    """Start a process with a client that is not connected yet."""
    process = await asyncio.create_subprocess_exec(
        program,
        json.dumps({"url": url, "token": token, "protobuf": protobuf}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield GoClient(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()  # it ends with its input
        async with asyncio.timeout(TIMEOUT):
            await process.wait()
