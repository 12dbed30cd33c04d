"""The site that listens to signals, as a server, and what its receivers wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.server import Server, wait_until

OPTIONS: dict[str, Any] = {
    "namespaces": [
        {"name": "kept", "history_size": 100, "history_lifetime": 300},
        {"name": "watched", "history_size": 100, "history_lifetime": 300},
    ],
    "client_insecure": False,
}

Entry = dict[str, Any]


class Log:
    """What receivers wrote, in all processes that share the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def entries(self, word: str) -> list[Entry]:
        """The lines with a word in them, in order."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if word in line]

    def kinds(self, word: str) -> list[str]:
        return [entry["kind"] for entry in self.entries(word)]

    async def wait(self, word: str, *kinds: str) -> list[Entry]:
        """The lines with a word in them, when there are these kinds and no others, in order."""
        await self.until(lambda: len(self.kinds(word)) >= len(kinds), f"{kinds} for {word}")
        entries = self.entries(word)
        assert [entry["kind"] for entry in entries] == list(kinds), entries
        return entries

    async def until(self, condition: Callable[[], bool], what: str = "the condition") -> None:
        await asyncio.to_thread(wait_until, condition, 20.0, what)


def do(server: Server, action: str, **arguments: Any) -> Any:
    """Have the site do something; see tests/site/listening/views.py."""
    response = httpx.post(f"{server.address}/do/{action}", json=arguments, timeout=20)
    assert response.status_code == 200, response.text
    return response.json()["result"]
