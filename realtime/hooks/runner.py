"""Runs functions of the site: on worker threads or on the event loop, bounded in number and time.

Synchronous functions, and what coroutines do by `sync_to_async` (all of the asynchronous ORM,
for one), run in a small pool of threads. As around a Django view, database connections that
should not be kept are closed before and after each call: an idle socket holds none.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, iscoroutinefunction
from django.db import close_old_connections

from realtime.errors import Disconnect, Error, InternalError


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


logger = logging.getLogger("realtime.hooks")

QUEUE_PER_WORKER = 100
"""Calls that may wait for a thread, for each thread; more are refused at once."""

CLOSE_TIMEOUT = 1.0
CLOSE_INTERVAL = 0.01
"""Seconds in which functions that run may end, when the process ends; how often that is seen."""


class Runner:
    """Runs functions of the site. Belongs to one event loop."""

    def __init__(self, workers: int, timeout: float) -> None:
        """
        Args:
            workers: threads for synchronous functions.
            timeout: seconds a function may take. A thread cannot be stopped: its caller is
                told, and the thread goes on.
        """
        self._timeout = timeout
        self._pool = _Pool(workers, workers * QUEUE_PER_WORKER, "realtime-hook")
        # Django's own choice would be one thread for all coroutines of the process, in which
        # a slow query stalls everybody
        self._threads = ThreadSensitiveContext()
        SyncToAsync.context_to_thread_executor[self._threads] = self._pool
        self._calls: set[asyncio.Task[Any]] = set()

    async def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        read: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """What `read` makes of the result of a function.

        `read` runs where a synchronous function ran: a result may read the database only
        when it is looked at.

        Raises:
            Error, Disconnect: the function says so.
            InternalError: it failed, took too long, or too many wait; the log has the reason.
        """
        context = contextvars.copy_context()
        context.run(SyncToAsync.thread_sensitive_context.set, self._threads)
        call = asyncio.get_running_loop().create_task(
            self._call(function, arguments, read), context=context
        )
        self._calls.add(call)
        call.add_done_callback(self._ended)
        try:
            # not `asyncio.timeout`, which waits for a coroutine that does not stop
            await asyncio.wait({call}, timeout=self._timeout)
        finally:
            in_time = call.done()
            call.cancel()
        if not in_time:
            logger.error("%s took longer than %g s", name_of(function), self._timeout)
            raise InternalError
        try:
            return call.result()
        except (Error, Disconnect):
            raise
        except asyncio.CancelledError:
            logger.error("%s was stopped", name_of(function))
        except Exception:
            logger.exception("%s failed", name_of(function))
        raise InternalError

    async def _call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], read: Callable[[Any], Any]
    ) -> Any:
        try:
            if iscoroutinefunction(function):
                answer = function(*arguments)
            else:
                loop = asyncio.get_running_loop()
                answer, error = await loop.run_in_executor(
                    self._pool, _in_thread, function, arguments, read
                )
                if error is not None:
                    try:
                        raise error
                    finally:
                        del error  # its traceback holds this frame
                # a decorator, or an object that can be called, may hide a coroutine function
                if not inspect.isawaitable(answer):
                    return answer
            return read(await answer)
        except SystemExit as error:
            raise RuntimeError("a function of the site wants to end the process") from error

    def _ended(self, call: asyncio.Task[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # nobody may be waiting any more

    async def close(self) -> None:
        """Start nothing more; what runs may end, for a moment. Bounded in time."""
        self._pool.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while self._pool.busy:
                    await asyncio.sleep(CLOSE_INTERVAL)


@contextmanager
def _own_connections() -> Iterator[None]:
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


connections: Callable[[], AbstractContextManager[None]] = _own_connections
"""Surrounds every call. `realtime.testing` lends the connections of a test instead."""


class _Pool(Pool):
    """Each call leaves no database connection behind."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return super().submit(_with_connections, function, arguments, named)


def _with_connections(
    function: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> Any:
    with connections():
        return function(*arguments, **named)


def _in_thread(
    function: Callable[..., Any], arguments: tuple[Any, ...], read: Callable[[Any], Any]
) -> tuple[Any, BaseException | None]:
    """The answer, or what was raised.

    Not raised here: futures take StopIteration for nothing, and for some exceptions put new
    ones without a traceback.
    """
    try:
        answer = function(*arguments)
        return (answer if inspect.isawaitable(answer) else read(answer)), None
    except BaseException as error:
        return None, error


def name_of(function: Callable[..., Any]) -> str:
    """What a log calls a function."""
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else repr(function)


T = TypeVar("T")


def call(function: Callable[..., Any], argument: Any, read: Callable[[Any], T]) -> T:
    """What `read` makes of the answer of a function or a coroutine function.

    Raises:
        Error, Disconnect: the function refuses.
        InternalError: it failed, or its answer cannot be used; the log has the reason.
    """
    try:
        answer = function(argument)
        if inspect.isawaitable(answer):
            answer = async_to_sync(_wait)(answer)
        return read(answer)
    except (Error, Disconnect):
        raise
    except Exception:
        logger.exception("%s failed", name_of(function))
        raise InternalError from None


async def _wait(answer: Awaitable[Any]) -> Any:
    return await answer
