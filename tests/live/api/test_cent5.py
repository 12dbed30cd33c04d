"""The Python API client of later versions of the reference server, `cent` 5, unmodified."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.api_client import BOTH, OPTIONS, start
from tests.live.configurations import Connect, Serve
from tests.server import API_KEY, ROOT, Server

CENT = Path(sys.prefix) / "cent5"
"""Where the Makefile installs it: it has the name of cent 3, which other tests use."""


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return start(serve, request.param, **OPTIONS)


def run(server: Server, channel: str, user: str) -> Any:
    """What `cent5_session` prints."""
    script = ROOT / "tests" / "live" / "cent5_session.py"
    arguments = [sys.executable, str(script), f"{server.address}/api", API_KEY, channel, user]
    environment = {**os.environ, "PYTHONPATH": str(CENT)}
    done = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_every_method_works(server: Server, connect: Connect, unique: str) -> None:
    assert CENT.is_dir(), "cent 5 is missing: make .venv/.installed-dev"
    channel = f"kept:{unique}"
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": channel})

    results = await asyncio.to_thread(run, server, channel, unique)

    epoch = results["publish"]["epoch"]
    assert results["publish"] == {"offset": 1, "epoch": epoch}
    assert results["publish again"] == results["publish"]
    kept, refused = results["broadcast"]["responses"]
    assert kept["result"] == {"offset": 2, "epoch": epoch}
    assert refused["error"]["code"] == 102
    history = results["history"]
    assert [(each["offset"], each["data"]) for each in history["publications"]] == [
        (1, {"n": 1}),
        (2, 3),
    ]
    assert (history["offset"], history["epoch"]) == (2, epoch)
    assert [each["offset"] for each in results["history since"]["publications"]] == [2]
    assert [each["offset"] for each in results["history reverse"]["publications"]] == [2]
    assert set(results["presence"]["presence"]) == {client.client}
    assert results["presence_stats"] == {"num_clients": 1, "num_users": 1}
    assert results["channels"] == {"channels": {channel: {"num_clients": 1}}}
    assert len(results["info"]["nodes"]) == 1
    assert results["batch"] == [{"offset": 3, "epoch": epoch}, {"num_clients": 1, "num_users": 1}]
    assert results["history_remove"] == results["refresh"] == {}
    assert results["subscribe"] == results["unsubscribe"] == results["disconnect"] == {}
    assert (results["error"], results["wrong key"]) == (102, "unauthorized")
    assert results["methods not called"] == []
    pushes = [await client.push() for _ in range(5)]
    assert [push["data"]["data"] for push in pushes[:3]] == [{"n": 1}, 3, 4]
    assert pushes[3:] == [{"type": kind, "channel": channel, "data": {}} for kind in (5, 3)]
    assert (await client.closed())[0] == 3012
