"""A bounded pool of daemon threads.

Python's ThreadPoolExecutor joins its threads when the process ends, so one function that hangs
would keep the process, and it keeps calls in its queue whose callers have gone. And a thread
cannot be stopped: here another thread takes the place of one whose call is overdue.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

logger = logging.getLogger("realtime.hooks")

MAX_OVERDUE_PER_WORKER = 4
"""Threads with overdue calls that are replaced, for each thread. More keep their places."""


class Work:
    """What calls belong to: one run of a hook, which may make several, one after another."""

    __slots__ = ("about", "client", "executing", "name", "overdue", "user")

    def __init__(self, name: str, client: str = "", user: str = "") -> None:
        """
        Args:
            name: of the hook, for the log.
            client: ID of the client for which it runs; "" for none.
            user: ID of the user; "" for none.
        """
        self.name = name
        self.client = client
        self.user = user
        self.about: dict[str, object] = {}
        """Fields of the records about it; see `logs`."""
        self.executing = 0
        """Threads that execute a call of it."""
        self.overdue = False
        """Whether its time is over: its caller no longer waits for it."""


current_work: ContextVar[Work | None] = ContextVar("current_work", default=None)
"""The work to which calls belong that are submitted in this context."""


class Pool(Executor):
    """Daemon threads, started when they are needed."""

    def __init__(
        self,
        workers: int,
        queue: int,
        name: str,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """
        Args:
            workers: number of threads, without those whose calls are overdue.
            queue: number of calls that may wait for a thread.
            name: prefix of the threads' names.
            around: surrounds each call, in its thread.
        """
        self._around = around
        self._workers = workers
        self._queue = queue
        self._names = (f"{name}_{number}" for number in itertools.count())
        self._changed = threading.Condition()
        self._waiting: dict[Future[Any], tuple[Work | None, Callable[[], Any]]] = {}
        self._running: dict[Future[Any], Work | None] = {}
        """Calls that threads execute. Each has one of the places of the pool."""
        self._overdue: dict[Future[Any], Work | None] = {}
        """Calls that threads still execute, but whose places others have taken."""
        self._threads = 0
        """Threads that wait or have a place."""
        self._idle = 0
        self._closed = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call a function in a thread.

        Raises:
            RuntimeError: too many calls wait already, the pool is closed, or the system cannot
                start a thread, and the pool has none.
        """
        call: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is closed")
            free = self._workers - len(self._running)
            if len(self._waiting) >= self._queue + free:
                raise RuntimeError("too many calls wait for a thread")
            self._waiting[call] = current_work.get(), partial(function, *arguments, **named)
            self._start_missing_thread()
            if not self._threads:
                del self._waiting[call]
                raise RuntimeError("the system cannot start a thread, and the pool has none")
            self._changed.notify()
        call.add_done_callback(self._forget)
        return call

    def _start_missing_thread(self) -> None:
        """Start a thread if more calls wait than threads, and there may be another one."""
        if len(self._waiting) <= self._idle or self._threads >= self._workers:
            return
        try:
            threading.Thread(target=self._run, name=next(self._names), daemon=True).start()
        except RuntimeError:
            logger.exception("Could not start a thread, hooks share %d", self._threads)
        else:
            self._threads += 1

    def _forget(self, call: Future[Any]) -> None:
        """Free the place of a call that was cancelled while it waited."""
        with self._changed:
            self._waiting.pop(call, None)

    def give_up(self, work: Work) -> int:
        """Cancel the waiting calls of a work, and replace the threads that execute others of it.

        Returns:
            The number of calls that waited.
        """
        with self._changed:
            work.overdue = True
            waiting = [call for call, (owner, _) in self._waiting.items() if owner is work]
            for call, owner in list(self._running.items()):
                if owner is work:
                    self._replace(call)
        for call in waiting:
            call.cancel()
        return len(waiting)

    def _replace(self, call: Future[Any]) -> None:
        """Let another thread take the place of the one that executes a call."""
        if len(self._overdue) < self._workers * MAX_OVERDUE_PER_WORKER:
            self._overdue[call] = self._running.pop(call)
            self._threads -= 1
            self._start_missing_thread()
        else:
            logger.error("%d threads are overdue; no more are replaced", len(self._overdue))

    def executed(self, overdue: bool) -> Counter[str]:
        """Return how many threads execute calls of which hook: of all, or of overdue ones."""
        with self._changed:
            works = [*self._running.values(), *self._overdue.values()]
        return Counter(work.name for work in works if work and (work.overdue or not overdue))

    @property
    def busy(self) -> bool:
        """Whether a thread is executing a call that is not overdue."""
        return bool(self._running)

    def close(self) -> None:
        """Refuse new calls and cancel those that wait; running calls continue."""
        with self._changed:
            self._closed = True
            waiting = list(self._waiting)
            self._changed.notify_all()
        for call in waiting:
            call.cancel()

    # in a thread

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            _execute(*taken, self._around)
            if not self._ended(taken[0]):
                return
            del taken  # an idle thread keeps nothing alive

    def _take(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Wait for the next call; return None when the pool is closed."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            call = next(iter(self._waiting))
            work, function = self._waiting.pop(call)
            self._running[call] = work
            if work is not None:
                work.executing += 1
                if work.overdue:  # what a coroutine cleans up when it is cancelled
                    self._replace(call)
            return call, function

    def _ended(self, call: Future[Any]) -> bool:
        """Note the end of a call; return whether its thread is still needed."""
        with self._changed:
            replaced = call in self._overdue
            work = (self._overdue if replaced else self._running).pop(call)
            if work is not None:
                work.executing -= 1
                if work.overdue:
                    what = "A thread of %s, which took too long, has ended"
                    logger.info(what, work.name, extra=work.about)
            if not replaced:
                return True
            needed = self._threads < self._workers
            self._threads += needed
            return needed


def _execute(
    call: Future[Any],
    function: Callable[[], Any],
    around: Callable[[], AbstractContextManager[None]],
) -> None:
    if not call.set_running_or_notify_cancel():
        return
    try:
        with around():
            result = function()
    except BaseException as error:
        call.set_exception(error)
        del call  # the error's traceback holds this frame
    else:
        call.set_result(result)
