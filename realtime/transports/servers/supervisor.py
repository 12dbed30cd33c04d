"""Supervisor: keeps several workers, each a process of its own, at one listening socket.

    of a worker      starting ──says "ready"──► serving ──told to stop──► draining ──► gone
                        └────────────ends────────────┴── in its place, after a pause ──► starting
                     any of them ──takes too long──► killed

    of a supervisor  beginning ──the first worker serves──► serving ◄──► restarting
                         └──it does not──► gone                └──signal──► stopping ──► gone

- beginning: one worker starts, and what keeps it from serving keeps all of them. The
  supervisor prints the reason and ends with status 1.
- serving: each place has a worker. One that ends is replaced: at once if it has served for a while,
  otherwise after a pause. The pause doubles, up to PAUSE_MOST, where new ones cannot start. Only
  its own place waits.
- restarting (SIGHUP): place by place, another worker starts; when it serves, the old one is told to
  stop, and closes its clients; when that is gone, the next place follows. If the new one does not
  serve, the old one stays, and so do the rest. Another SIGHUP meanwhile begins anew afterwards.
- stopping (SIGTERM, SIGINT): each worker gets SIGTERM, and another at each signal. All of them
  accept connections until their drains are over, as a process alone does.
- A worker that hangs keeps nothing from going on: one that says nothing for START_MOST seconds, or
  is not gone END_MARGIN seconds after the time that it needs at most, is killed.

Invariants: a place has one worker that accepts connections, or none while it waits for one; two
while one replaces the other. The socket is open as long as a worker accepts, or may come to: the
last one accepts what waits before it closes the socket. Workers that lose their supervisor stop by
themselves.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from realtime.transports.servers.listening import name_of

logger = logging.getLogger("realtime.supervisor")

WORKER_MODULE = "realtime.transports.servers.worker"
READY = b"ready"
LEAVE = b"leave"
"""What a worker is told where another one accepts connections in its place."""
PAUSE_LEAST = 1.0
PAUSE_MOST = 30.0
"""Seconds until a worker that ended soon is replaced, at first and at most."""
SERVED_WELL = 30.0
"""Seconds after which the end of a worker counts as the first one."""
START_MOST = 300.0
"""Seconds until a worker has to serve."""
END_MARGIN = 30.0
"""Seconds that a worker may need to end beyond those that it said."""
REASON_MOST_BYTES = 4096


class CannotStart(Exception):
    """A worker could not start. The text is the reason, for the operator."""


class Worker:
    """One process."""

    def __init__(
        self, process: asyncio.subprocess.Process, line: socket.socket, said: asyncio.Task[bytes]
    ) -> None:
        self.process = process
        self._line = line
        self._said = said
        self.started_at = time.monotonic()
        self.is_told = False
        """Whether the supervisor has asked it to stop."""
        self._end_most = 0.0
        """Seconds that it has to end, once it is asked to stop."""

    async def starts(self) -> None:
        """Wait until it serves.

        Raises:
            CannotStart: it does not, and was killed.
        """
        await asyncio.wait([self._said], timeout=START_MOST)
        if not self._said.done():
            self.kill()
            raise CannotStart(f"it was not ready within {START_MOST:g} s")
        word, _, rest = self._said.result().partition(b" ")
        if word == READY:
            self._end_most = float(rest)
            return
        self.stop()
        status = None if self._said.result() else await self.process.wait()
        reason = self._said.result().decode(errors="replace").strip()
        raise CannotStart(reason or f"it ended with status {status}")

    def stop(self) -> None:
        """Tell it to stop, and see that it does. Returns at once."""
        self._see_that_it_stops()
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def leave(self) -> None:
        """Tell it to stop and to accept no more, and see that it does. Returns at once."""
        self._see_that_it_stops()
        with suppress(OSError):
            self._line.send(LEAVE)

    def _see_that_it_stops(self) -> None:
        if not self.is_told:
            loop = asyncio.get_running_loop()
            loop.call_later(self._end_most + END_MARGIN, self.kill)
        self.is_told = True

    def kill(self) -> None:
        """Kill it, if it has not ended. Returns at once."""
        self.is_told = True
        if self.process.returncode is None:
            logger.error("Worker %d hangs, so it is killed", self.process.pid)
            with suppress(ProcessLookupError):
                self.process.kill()


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
        status = 0
        try:
            first = await self._start()
        except CannotStart as error:
            if not self._stopping.is_set():
                logger.error("Could not start: %s", error)
                status = 1
        else:
            if not self._stopping.is_set():
                await self._serve(first)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._processes.values())
        return status

    async def _serve(self, first: Worker) -> None:
        """Serve until a signal, with a worker that serves already."""
        self._put(0, first)
        logger.info("Listening on %s with %d workers", name_of(self._listener), self._number)
        await asyncio.gather(*map(self._keep, range(1, self._number)))
        restarting = asyncio.create_task(self._restart_when_told())
        await self._stopping.wait()
        restarting.cancel()

    def _stop(self) -> None:
        self._stopping.set()
        self._listener.close()
        for worker in self._processes:
            worker.stop()

    # one place

    async def _keep(self, place: int) -> None:
        """Start the worker of a place, again and again until one serves."""
        pause = PAUSE_LEAST
        while not self._stopping.is_set() and place not in self._workers:
            try:
                worker = await self._start()
            except CannotStart as error:
                if not self._stopping.is_set():
                    logger.error("A worker could not start: %s", error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause)
                pause = min(2 * pause, PAUSE_MOST)
                continue
            if place in self._workers:  # a restart was quicker
                worker.leave()
            elif not self._stopping.is_set():
                self._put(place, worker)

    def _put(self, place: int, worker: Worker) -> None:
        """Give a place to a worker that serves, and watch it."""
        self._workers[place] = worker
        logger.info("Worker %d serves", worker.process.pid)
        task = asyncio.create_task(self._watch(place, worker))
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

    async def _start(self) -> Worker:
        """Start a worker, and wait until it serves.

        Raises:
            CannotStart: it does not, or there can be no process, for example for want of memory.
        """
        try:
            worker = await self._spawn()
        except OSError as error:
            raise CannotStart(f"no process can be started: {error}") from None
        await worker.starts()
        return worker

    async def _spawn(self) -> Worker:
        """Start a process; it does not serve yet.

        Raises:
            OSError: the system does not allow that, or Python is not where it was.
        """
        if self._stopping.is_set():
            raise OSError("the service stops")
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as opened:
            opened.enter_context(ours)
            descriptors = (self._listener.fileno(), theirs.fileno())
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", WORKER_MODULE, *map(str, descriptors), *self._arguments),
                pass_fds=descriptors,
            )
            opened.pop_all()
        ours.setblocking(False)
        said = asyncio.create_task(_read(ours))
        worker = Worker(process, ours, said)
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
            try:
                new = await self._start()
            except CannotStart as error:
                if self._stopping.is_set():
                    return False
                logger.error(
                    "Rolling restart stopped, the remaining workers keep running:"
                    " new worker failed: %s",
                    error,
                )
                return False
            old = self._workers.get(place)
            self._put(place, new)
            if old is not None:
                old.leave()
                await old.process.wait()
                logger.info("Worker %d has ended", old.process.pid)
        return True


async def _read(line: socket.socket) -> bytes:
    """Return what a worker says first; empty if it ends without a word."""
    try:
        return await asyncio.get_running_loop().sock_recv(line, REASON_MOST_BYTES)
    except OSError:
        return b""
