"""Processes of a site that serve no clients, for tests of publishing from anywhere."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.live.api_client import post
from tests.live.site_process import SiteProcess, site
from tests.processes import STRICT, run_python, start_python
from tests.server import API_KEY, ROOT, SECRET, Server

TIMEOUT = 60.0

SET_UP = "import django; django.setup(); import asyncio, os, sys, threading, realtime\n"
"""How a program begins."""

SLOW_TURN = re.compile(r"Executing <.* took [0-9.]+ seconds")
Outcome = dict[str, Any]


def environment(directory: Path, options: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a process of the test site with these options of the service."""
    config = directory / "config.json"
    config.write_text(json.dumps({"token_hmac_secret_key": SECRET, "api_key": API_KEY, **options}))
    return {"DJANGO_SETTINGS_MODULE": "tests.settings", "SERVICE_CONFIG_FILE": str(config)}


def run(
    code: str,
    environment: Mapping[str, str],
    arguments: tuple[str, ...] = STRICT,
    *,
    forked: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end.

    Args:
        forked: whether it is forked where that works, see `tests.processes`. The process that forks
            takes as long to start as two programs, so this is for modules with several.
    """
    if forked:
        variables = {**os.environ, **environment}
        return run_python([*arguments, "-c", code], ROOT, variables, timeout=TIMEOUT)
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
    code: str,
    environment: Mapping[str, str],
    arguments: tuple[str, ...] = STRICT,
    *,
    forked: bool = False,
) -> list[str]:
    """The lines a program prints, which must succeed and not complain of anything; see `run`."""
    finished = run(code, environment, arguments, forked=forked)
    assert finished.returncode == 0, finished.stderr
    # asyncio's debug mode tells of turns that took long, which is no concern of ours here
    complaints = [line for line in finished.stderr.splitlines() if not SLOW_TURN.match(line)]
    assert complaints == [], finished.stderr
    return finished.stdout.splitlines()


class Worker:
    """A process that does what it is told; see `tests.site.worker`."""

    def __init__(self, environment: Mapping[str, str], cwd: Path = ROOT) -> None:
        (theirs, lines), (answers, told) = os.pipe(), os.pipe()
        self._lines, self._answers = os.fdopen(lines, "w"), os.fdopen(answers)
        with open(theirs, "rb") as stdin, open(told, "wb") as stdout, open(os.dup(2), "wb") as log:
            self._process = start_python(
                ["-m", "tests.site.worker"],
                cwd,
                {**os.environ, **environment},
                (stdin, stdout, log),
            )

    def call(self, way: str, function: str, *arguments: Any) -> Outcome:
        """Have the process call a function; see `tests.site.worker` for ways and answers."""
        line = json.dumps({"way": way, "function": function, "arguments": arguments})
        self._lines.write(line + "\n")
        self._lines.flush()
        patience = threading.Timer(TIMEOUT, self._kill)
        patience.start()
        try:
            answer = self._answers.readline()
        finally:
            patience.cancel()
        assert answer, f"the process ended, or did not answer within {TIMEOUT:g} s"
        outcome: Outcome = json.loads(answer)
        return outcome

    def stop(self) -> int:
        """Let the process end; returns its exit status."""
        self._lines.close()
        try:
            return self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._kill()
            return self._process.wait(TIMEOUT)
        finally:
            self._answers.close()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)


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
