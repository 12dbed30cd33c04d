"""A Redis that answers with what a terminal obeys."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.tools.command import run

ERROR = "\x1b[2J\x9b1m\u202e"


class Answer(socketserver.StreamRequestHandler):
    """Answers each command with an error."""

    def handle(self) -> None:
        while head := self.rfile.readline():
            for _ in range(2 * int(head[1:])):  # the length and the text of each argument
                self.rfile.readline()
            self.wfile.write(f"-ERR {ERROR}\r\n".encode())


@pytest.fixture
def hostile_redis() -> Iterator[str]:
    """Its URL."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "arguments", [("top", "--once"), ("tail", "a", "--seconds", "1")], ids=lambda a: a[0]
)
def test_its_errors_are_shown_escaped(
    hostile_redis: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    finished = run(tmp_path, {"redis_url": hostile_redis}, *arguments)
    shown = finished.stdout + finished.stderr
    assert "\\x1b[2J\\x9b1m\\u202e" in shown
    assert shown.replace("\n", "").isprintable()


def test_json_has_the_text_as_it_came(hostile_redis: str, tmp_path: Path) -> None:
    finished = run(tmp_path, {"redis_url": hostile_redis}, "info", "--json")
    assert finished.stdout.strip().isprintable()
    assert ERROR in json.loads(finished.stdout)["error"]["message"]
