"""Processes of a site that serve no clients, for tests of publishing from anywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.api_client import post
from tests.live.site_process import SiteProcess, site
from tests.server import API_KEY, ROOT, SECRET, Server

TIMEOUT = 60.0

SET_UP = "import django; django.setup(); import asyncio, os, sys, threading, realtime\n"
"""How a program begins."""

SLOW_TURN = re.compile(r"Executing <.* took [0-9.]+ seconds")
STRICT = ("-X", "dev", "-W", "error")
"""Arguments of Python with which a program fails for what it would only be warned of."""

Outcome = dict[str, Any]


def environment(directory: Path, options: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a process of the test site with these options of the service."""
    config = directory / "config.json"
    config.write_text(json.dumps({"token_hmac_secret_key": SECRET, "api_key": API_KEY, **options}))
    return {"DJANGO_SETTINGS_MODULE": "tests.settings", "SERVICE_CONFIG_FILE": str(config)}


def run(
    code: str, environment: Mapping[str, str], arguments: tuple[str, ...] = STRICT
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end."""
    return subprocess.run(
        [sys.executable, *arguments, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def output(
    code: str, environment: Mapping[str, str], arguments: tuple[str, ...] = STRICT
) -> list[str]:
    """The lines a program prints, which must succeed and not complain of anything."""
    finished = run(code, environment, arguments)
    assert finished.returncode == 0, finished.stderr
    # asyncio's debug mode tells of turns that took long, which is no concern of ours here
    complaints = [line for line in finished.stderr.splitlines() if not SLOW_TURN.match(line)]
    assert complaints == [], finished.stderr
    return finished.stdout.splitlines()


class Worker:
    """A process that does what it is told; see `tests.site.worker`."""

    def __init__(self, environment: Mapping[str, str], cwd: Path = ROOT) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.site.worker"],
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, way: str, function: str, *arguments: Any) -> Outcome:
        """Have the process call a function; see `tests.site.worker` for ways and answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"way": way, "function": function, "arguments": arguments})
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        patience = threading.Timer(TIMEOUT, self._process.kill)
        patience.start()
        try:
            answer = self._process.stdout.readline()
        finally:
            patience.cancel()
        assert answer, f"the process ended, or did not answer within {TIMEOUT:g} s"
        outcome: Outcome = json.loads(answer)
        return outcome

    def stop(self) -> int:
        """Let the process end; returns its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            return self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(TIMEOUT)
        finally:
            self._process.stdout.close()


@contextmanager
def worker(environment: Mapping[str, str], cwd: Path = ROOT) -> Iterator[Worker]:
    """A worker for the length of a `with` block. `cwd`: the tree whose code it runs."""
    process = Worker(environment, cwd)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def wsgi_site(environment: Mapping[str, str]) -> Iterator[SiteProcess]:
    """The test site under WSGI, for the length of a `with` block."""
    listening = r"Serving on http://127\.0\.0\.1:(\d+)"
    with site(["-m", "tests.site.wsgi"], listening, environment) as process:
        yield process


def call_view(server: Server | SiteProcess, view: str, function: str, *arguments: Any) -> Outcome:
    """Have a view of the test site call a function; see `tests.site.views` for answers.

    "seconds" from the request to the answer are told besides.
    """
    body = json.dumps({"function": function, "arguments": arguments}).encode()
    began = time.monotonic()
    answer = post(server, body, path=f"/call/{view}", headers={})
    seconds = time.monotonic() - began
    assert answer.status == 200, server.log
    outcome: Outcome = json.loads(answer.body)
    return {**outcome, "seconds": seconds}
