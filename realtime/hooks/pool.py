"""Threads with a bounded queue, for functions that may never end.

`ThreadPoolExecutor` will not do: the process waits for its threads at its end, so one function
that hangs keeps the service from stopping; and its queue keeps the calls whose callers have
gone, so while all threads hang it grows without bound.
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
    """Daemon threads, begun when they are needed."""

    def __init__(self, workers: int, queue: int, name: str) -> None:
        """
        Args:
            workers: threads.
            queue: calls that may wait for one.
            name: what the threads' names begin with.
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
        """
        Raises:
            RuntimeError: too many calls wait already, or the pool is closed.
        """
        call: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is closed")
            free = self._workers - len(self._running)
            if len(self._waiting) >= self._queue + free:
                raise RuntimeError("too many calls wait for a thread")
            if len(self._waiting) >= self._idle and self._threads < self._workers:
                self._begin()
            self._waiting[call] = partial(function, *arguments, **named)
            self._changed.notify()
        call.add_done_callback(self._forget)
        return call

    def _begin(self) -> None:
        name = f"{self._name}_{self._threads}"
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError:
            if not self._threads:
                raise
            logger.exception("Functions wait for a thread")  # those that are there will do
        else:
            self._threads += 1

    def _forget(self, call: Future[Any]) -> None:
        """Let a call whose caller has gone wait no longer."""
        with self._changed:
            self._waiting.pop(call, None)

    @property
    def busy(self) -> bool:
        """Whether anything runs."""
        return bool(self._running)

    def close(self) -> None:
        """Begin nothing more, and cancel what waits; what runs goes on."""
        with self._changed:
            self._closed = True
            waiting = list(self._waiting)
            self._changed.notify_all()
        for call in waiting:
            call.cancel()

    # a thread

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            _do(*taken)
            with self._changed:
                self._running.discard(taken[0])
            del taken  # an idle thread keeps nothing alive

    def _take(self) -> tuple[Future[Any], Callable[[], Any]] | None:
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


def _do(call: Future[Any], work: Callable[[], Any]) -> None:
    if not call.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:
        call.set_exception(error)
        del call  # the error's traceback holds this frame
    else:
        call.set_result(result)
