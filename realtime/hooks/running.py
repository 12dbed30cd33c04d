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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, iscoroutinefunction
from django.db import close_old_connections

from realtime.errors import Disconnect, Error, InternalError
from realtime.hooks.pool import Pool

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
