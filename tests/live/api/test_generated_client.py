"""A client that is generated from the OpenAPI document: its types, and each of its methods."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

import realtime
from realtime.server_api import methods, methods_v2
from realtime.tools import openapi
from tests.live.api_client import OPTIONS, start
from tests.live.configurations import Connect, Serve
from tests.processes import run_python
from tests.server import API_KEY, ROOT

SESSION = ROOT / "tests" / "live" / "generated_session.py"
TIMEOUT = 120.0
MYPY = """
[mypy]
strict = true
[mypy-generated_client.client]
# the generator gives what __exit__ gets to httpx as it is
disable_error_code = arg-type
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the client."""
    directory = tmp_path_factory.mktemp("generated")
    document, options = directory / "openapi.json", directory / "options.yml"
    document.write_text(json.dumps(openapi.document(realtime.__version__)))
    options.write_text("post_hooks: []\n")
    package = ["--meta", "none", "--output-path", str(directory / "generated_client")]
    command = ["generate", "--path", str(document), "--config", str(options), *package]
    # a piece that cannot be generated is a warning
    run_tool(directory, "openapi_python_client", *command, "--fail-on-warning")
    return directory


def run_tool(directory: Path, module: str, *arguments: str) -> None:
    done = run_python(["-m", module, *arguments], directory, dict(os.environ), timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_client_are_strict(made: Path) -> None:
    (made / "mypy.ini").write_text(MYPY)
    # beside the client, so that mypy takes nothing else of the tests
    (made / SESSION.name).write_text(SESSION.read_text())
    run_tool(made, "mypy", "--config-file", "mypy.ini", SESSION.name, "generated_client")


async def test_every_method_works(made: Path, serve: Serve, connect: Connect, unique: str) -> None:
    keyed = {"name": "keyed", "map": "persistent"}
    options = {**OPTIONS, "namespaces": [*OPTIONS["namespaces"], keyed]}
    server = start(serve, "asgi", **options)
    channel = f"kept:{unique}"
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": channel})

    arguments = [str(SESSION), server.address, API_KEY, channel, unique]
    environment = {**os.environ, "PYTHONPATH": str(made)}
    done = await asyncio.to_thread(run_python, arguments, made, environment, timeout=TIMEOUT)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["methods"]) == set(methods_v2.NAMES)
    assert found["methods"] == {
        "publish": [1, True],
        "broadcast": [2, 102, "namespace not found"],
        "history": [[{"n": 1}, 2], {"colour": "red"}, [2]],
        "presence": [[True, unique]],
        "presence_stats": [1, 1],
        "channels": {channel: 1},
        "info": [[True, True]],
        "batch": [3, 1, 102],
        "history_remove": {},
        "refresh": {},
        "unsubscribe": [],
        "subscribe": [{}, 500, 100],
        "map_publish": [[1, None], [1, "key_exists"]],
        "map_read_state": [["a", {"n": 1}, 1]],
        "map_stats": 1,
        "map_remove": 2,
        "map_read_stream": [["a", False], ["a", True]],
        "map_clear": {},
        "block_user": {},
        "blocked_users": [["somebody else", True]],
        "unblock_user": {},
        "disconnect": {},
        "rpc": [104, "method not found"],
    }
    assert set(found["commands"]) == {row.name for row in methods.METHODS}
    assert found["commands"] == {
        "publish": 7,
        "broadcast": {},
        "history": [4, 5],
        "presence": [unique],
        "presence_stats": [1, 1],
        "channels": [channel],
        "info": [None],
        "history_remove": {},
        "unsubscribe": {},
        "disconnect": {},
        "rpc": 104,
    }
