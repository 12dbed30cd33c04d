"""The supervisor goes on where a worker hangs, and where there can be no worker."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from realtime.transports.servers import supervisor
from realtime.transports.servers.listening import listen_on_port
from realtime.transports.servers.supervisor import CannotStart, Supervisor, Worker


@asynccontextmanager
async def deaf_worker(says: bytes | None) -> AsyncIterator[Worker]:
    """Yield a worker that takes no signal but SIGKILL, and that has said this, or nothing yet."""

    async def said() -> bytes:
        if says is None:
            await asyncio.Event().wait()
        return says or b""

    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", "trap '' TERM; echo; exec sleep 3600"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    saying = asyncio.create_task(said())
    line, far = socket.socketpair()
    try:
        yield Worker(process, line, saying)
    finally:
        line.close()
        far.close()
        saying.cancel()
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_worker_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "END_MARGIN", 0.0)
    async with deaf_worker(says=b"ready 0.01") as worker:
        await worker.starts()
        assert worker.process.returncode is None
        worker.stop()
        assert await worker.process.wait() == -signal.SIGKILL


async def test_worker_has_the_time_to_end_that_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "END_MARGIN", 0.0)
    killed: list[float] = []
    loop = asyncio.get_running_loop()
    async with deaf_worker(says=b"ready 3604") as worker:
        await worker.starts()
        monkeypatch.setattr(loop, "call_later", lambda after, call: killed.append(after))

        worker.stop()
        worker.stop()  # a second signal

        assert killed == [3604]


async def test_worker_that_does_not_serve_in_time_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "START_MOST", 0.01)
    async with deaf_worker(says=None) as worker:
        with pytest.raises(CannotStart, match="not ready within"):
            await worker.starts()
        assert await worker.process.wait() == -signal.SIGKILL


async def test_supervisor_says_that_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with listen_on_port("127.0.0.1", 0) as listener, caplog.at_level(logging.ERROR):
        status = await Supervisor(listener, 2, ["site.asgi:application"]).run()
    assert status == 1
    [line] = caplog.messages
    assert line.startswith("Could not start: no process can be started")


async def test_place_is_filled_when_a_process_can_be_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "PAUSE_LEAST", 0.001)
    monkeypatch.setattr(supervisor, "WORKER_MODULE", "tests.unit.transports.quick_worker")
    python = sys.executable
    with listen_on_port("127.0.0.1", 0) as listener, caplog.at_level(logging.INFO):
        running = asyncio.create_task(Supervisor(listener, 1, []).run())
        first = await line_of(caplog, "Worker ")
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        signal.raise_signal(signal.SIGHUP)
        await line_of(
            caplog,
            "Rolling restart stopped, the remaining workers keep running: new worker failed: no",
        )
        monkeypatch.setattr(sys, "executable", python)
        signal.raise_signal(signal.SIGHUP)
        await line_of(caplog, "All workers are new")
        signal.raise_signal(signal.SIGTERM)

        assert await running == 0
    assert f"{first.removesuffix('serves')}has ended" in caplog.messages


async def line_of(caplog: pytest.LogCaptureFixture, start: str) -> str:
    """Wait for a log line that starts with a text. Return it."""
    while True:
        for line in caplog.messages:
            if line.startswith(start):
                return line
        await asyncio.sleep(0.01)
