"""A worker beside a site: what becomes of its answers when it is killed."""

from __future__ import annotations

import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.answers.conftest import CHAT
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server

WORKER = """
import sys, time
import django; django.setup()
from realtime.answers import answer, begin
row = begin("chat:1", user=17, form="text")
with answer(id=row.pk) as a:
    a.write("half")
    print(row.pk, flush=True)
    time.sleep(3600)
"""

LEASE = """
import sys
import django; django.setup()
from functools import partial
from realtime.answers.flusher import lease_of
from realtime.answers.models import Answer
from realtime.serving import serving
producer = Answer.objects.get(pk=sys.argv[1]).producer
serving.call(lambda member: member.cluster.claim(lease_of(producer), producer, 0))
"""
"""Does at once what the end of a lease does."""


@pytest.fixture
def worker(environment: dict[str, str]) -> Iterator[Popen[str]]:
    """A process that writes half of an answer, says its ID, and goes on for an hour."""
    command = [sys.executable, "-c", WORKER]
    process = Popen(command, cwd=ROOT, env=os.environ | environment, stdout=PIPE, text=True)
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_killed_worker_leaves_an_interrupted_answer(
    own_server: Callable[..., Server],
    environment: dict[str, str],
    redis_server: RedisServer,
    unique: str,
    worker: Popen[str],
) -> None:
    shared = {name: environment[name] for name in ("TEST_DATABASE", "TEST_APPS")}
    options: dict[str, Any] = {"redis_url": redis_server.url, "redis_prefix": unique}
    namespace = CHAT | {"allow_subscribe_for_anonymous": True}
    server = own_server(environment=shared, namespaces=[namespace], **options)
    assert worker.stdout is not None
    answer_id = worker.stdout.readline().strip()
    address = f"{server.address}/answers/{answer_id}/events"
    with closing(urllib.request.urlopen(address, timeout=60)) as reading:
        while b"half" not in reading.readline():
            pass
        os.kill(worker.pid, signal.SIGKILL)
        lease = run_python(["-c", LEASE, answer_id], ROOT, os.environ | environment)
        assert lease.returncode == 0, lease.stderr
        assert reading.read().endswith(b"id: end\nevent: end\ndata: interrupted\n\n")
