"""Supervisor: keeps several workers, each a process of its own, at one listening socket.

    of a worker      starting ──says "ready"──► serving ──told to stop──► draining ──► gone
                        └────────────ends────────────┴── in its place, after a pause ──► starting

    of a supervisor  beginning ──the first worker serves──► serving ◄──► restarting
                         └──it does not──► gone                └──signal──► stopping ──► gone

- beginning: one worker starts, and what keeps it from serving keeps all of them. Its reason is
  told, and the supervisor ends with status 1.
- serving: each place has a worker. One that ends is replaced: at once if it has served for a while,
  otherwise after a pause. The pause doubles, up to PAUSE_MOST, where new ones cannot start. Only
  its own place waits.
- restarting (SIGHUP): place by place, another worker starts; when it serves, the old one is told to
  stop, and closes its clients; when that is gone, the next place follows. If the new one does not
  serve, the old one stays, and so do the rest. Another SIGHUP meanwhile begins anew afterwards.
- stopping (SIGTERM, SIGINT): each worker is told to stop, and told again at each signal.

Invariants: a place has one worker that accepts connections, or none while it waits for one; two
while one replaces the other. The socket stays open until the last worker is gone, so a connection
that waits to be accepted is lost with the whole service only. Workers that lose their supervisor
stop by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from realtime.transports.servers.listening import name_of

logger = logging.getLogger("realtime.supervisor")

WORKER_MODULE = "realtime.transports.servers.worker"
READY = b"ready\n"
PAUSE_LEAST = 1.0
PAUSE_MOST = 30.0
"""Seconds until a worker that ended soon is replaced, at first and at most."""
SERVED_WELL = 30.0
"""Seconds after which the end of a worker counts as the first one."""
REASON_MOST_BYTES = 4096


class Worker:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process, said: asyncio.Task[bytes]) -> None:
        self.process = process
        self._said = said
        self.started_at = time.monotonic()
        self.is_told = False
        """Whether it was told to stop."""

    async def starts(self) -> str | None:
        """Wait until it serves. Return None then, or why it does not."""
        said = await self._said
        if said == READY:
            return None
        status = await self.process.wait()
        return said.decode(errors="replace").strip() or f"it ended with status {status}"

    def stop(self) -> None:
        """Tell it to stop. Returns at once."""
        self.is_told = True
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)


class Supervisor:
    """See the module."""

    def __init__(self, listener: socket.socket, number: int, arguments: Sequence[str]) -> None:
        """
        Args:
            listener: the listening socket.
            number: of workers.
            arguments: of daphne's command line, without where to listen.
        """
        self._listener = listener
        self._number = number
        self._arguments = arguments
        self._workers: dict[int, Worker] = {}
        """Place → the worker that serves there."""
        self._tasks: set[asyncio.Task[None]] = set()
        """What is cancelled when the supervisor stops."""
        self._processes: dict[Worker, asyncio.Task[None]] = {}
        """Every process that has not ended → waits for its end."""
        self._restart = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Serve until a signal ends it. Return the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._restart.set)
        first = await self._spawn()
        failure = await first.starts()
        if failure is not None and not self._stopping.is_set():
            logger.error("Could not start: %s", failure)
            return 1
        if not self._stopping.is_set():
            self._put(0, first)
            logger.info("Listening on %s with %d workers", name_of(self._listener), self._number)
            await asyncio.gather(*map(self._keep, range(1, self._number)))
            restarting = asyncio.create_task(self._restart_when_told())
            await self._stopping.wait()
            restarting.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._processes.values())
        return 0

    def _stop(self) -> None:
        self._stopping.set()
        for worker in self._processes:
            worker.stop()

    # one place

    async def _keep(self, place: int) -> None:
        """Start the worker of a place, again and again until one serves."""
        pause = PAUSE_LEAST
        while not self._stopping.is_set() and place not in self._workers:
            worker = await self._spawn()
            failure = await worker.starts()
            if self._stopping.is_set():
                return
            if failure is None:
                if place in self._workers:  # a restart was quicker
                    worker.stop()
                else:
                    self._put(place, worker)
                return
            logger.error("Worker %d could not start: %s", worker.process.pid, failure)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(2 * pause, PAUSE_MOST)

    def _put(self, place: int, worker: Worker) -> None:
        """Give a place to a worker that serves, and watch it."""
        self._workers[place] = worker
        logger.info("Worker %d serves", worker.process.pid)
        self._run(self._watch(place, worker))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background, until the supervisor stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, place: int, worker: Worker) -> None:
        """Replace the worker of a place when it ends without being told."""
        status = await worker.process.wait()
        if worker.is_told or self._workers.get(place) is not worker:
            return
        del self._workers[place]
        logger.error("Worker %d ended with status %d", worker.process.pid, status)
        if time.monotonic() - worker.started_at < SERVED_WELL:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), PAUSE_LEAST)
        await self._keep(place)

    async def _spawn(self) -> Worker:
        """Start a process; it does not serve yet."""
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = (self._listener.fileno(), theirs.fileno())
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", WORKER_MODULE, *map(str, descriptors), *self._arguments),
                pass_fds=descriptors,
            )
        ours.setblocking(False)
        said = asyncio.create_task(_read(ours))
        worker = Worker(process, said)
        self._processes[worker] = asyncio.create_task(self._forget(worker, ours))
        if self._stopping.is_set():
            worker.stop()
        return worker

    async def _forget(self, worker: Worker, line: socket.socket) -> None:
        """Wait for the end of a process. Until then its line is open: the supervisor lives."""
        with line:
            await worker.process.wait()
        del self._processes[worker]

    # all places

    async def _restart_when_told(self) -> None:
        while True:
            await self._restart.wait()
            self._restart.clear()
            logger.info("Restarting the workers one after another")
            if await self._restart_all():
                logger.info("All workers are new")

    async def _restart_all(self) -> bool:
        """Replace the workers. Return False if one could not start, so that the others stay."""
        for place in range(self._number):
            new = await self._spawn()
            if (failure := await new.starts()) is not None:
                logger.error("The other workers stay, for a new one could not start: %s", failure)
                return False
            old = self._workers.get(place)
            self._put(place, new)
            if old is not None:
                old.stop()
                await old.process.wait()
                logger.info("Worker %d has ended", old.process.pid)
        return True


async def _read(line: socket.socket) -> bytes:
    """Return what a worker says first; empty if it ends without a word."""
    try:
        return await asyncio.get_running_loop().sock_recv(line, REASON_MOST_BYTES)
    except OSError:
        return b""
