"""A bounded pool of daemon threads.

Python's ThreadPoolExecutor joins its threads when the process ends, so one function that hangs
would keep the process, and it keeps calls in its queue whose callers have gone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

logger = logging.getLogger("realtime.hooks")


class Pool(Executor):
    """Daemon threads, started when they are needed."""

    def __init__(self, workers: int, queue: int, name: str) -> None:
        """
        Args:
            workers: number of threads.
            queue: number of calls that may wait for a thread.
            name: prefix of the threads' names.
        """
        self._workers = workers
        self._queue = queue
        self._name = name
        self._changed = threading.Condition()
        self._waiting: dict[Future[Any], Callable[[], Any]] = {}
        self._running: set[Future[Any]] = set()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call a function in a thread.

        Raises:
            RuntimeError: too many calls wait already, the pool is closed, or the system gives
                no thread and there is none yet.
        """
        call: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is closed")
            free = self._workers - len(self._running)
            if len(self._waiting) >= self._queue + free:
                raise RuntimeError("too many calls wait for a thread")
            if len(self._waiting) >= self._idle and self._threads < self._workers:
                self._start_thread()
            self._waiting[call] = partial(function, *arguments, **named)
            self._changed.notify()
        call.add_done_callback(self._forget)
        return call

    def _start_thread(self) -> None:
        name = f"{self._name}_{self._threads}"
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError:
            if not self._threads:
                raise
            logger.exception("Could not start a thread, hooks share %d", self._threads)
        else:
            self._threads += 1

    def _forget(self, call: Future[Any]) -> None:
        """Free the place of a call that was cancelled while it waited."""
        with self._changed:
            self._waiting.pop(call, None)

    @property
    def busy(self) -> bool:
        """Whether a thread is executing a call."""
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
            _execute(*taken)
            with self._changed:
                self._running.discard(taken[0])
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
            self._running.add(call)
            return call, self._waiting.pop(call)


def _execute(call: Future[Any], work: Callable[[], Any]) -> None:
    if not call.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        call.set_exception(error)
        del call  # the error's traceback holds this frame
    else:
        call.set_result(result)
