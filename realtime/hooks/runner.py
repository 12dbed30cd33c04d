"""Run functions of the site, bounded in number and in time.

Synchronous functions run in a small pool of threads, and so does everything that coroutines do
through `sync_to_async`, such as the asynchronous ORM. As around a Django view, database
connections that should not be kept are closed before and after each call, so that an idle
client holds none. `Runner` serves an event loop; `call` is for a thread that may wait.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, iscoroutinefunction
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import close_old_connections

from realtime.errors import Disconnect, Error, InternalError, LimitExceeded, PermissionDenied
from realtime.hooks.pool import Pool, Work, current_work
from realtime.hooks.requests import Request
from realtime.node.hooks import Caller

logger = logging.getLogger("realtime.hooks")

T = TypeVar("T")

MAX_QUEUE_PER_WORKER = 100
"""Calls that may wait for a thread, for each thread; more are refused at once."""

MAX_OVERDUE_PER_CLIENT = 3
"""Overdue calls that a client, or a user with several clients, may have under way."""

CLOSE_TIMEOUT = 1.0
"""Seconds that running functions have to end when the runner is closed."""
CLOSE_INTERVAL = 0.01
"""Seconds between looks at whether they have."""


# database connections


Connections = Callable[[], AbstractContextManager[None]]
"""Surrounds each call of a function of the site: gives its thread database connections."""


@contextmanager
def own_connections() -> Iterator[None]:
    """Let a thread open connections of its own; close old ones, as Django does per request."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


def threads_can_be_chosen() -> bool:
    """Return whether `sync_to_async` inside coroutine functions can use threads of ours.

    asgiref does not document how: its public parameter `executor` is for one thread. System
    check W023 reports a version in which this has gone.
    """
    return isinstance(getattr(SyncToAsync, "context_to_thread_executor", None), MutableMapping)


# on an event loop


class Runner:
    """Runs functions of the site. Belongs to one event loop."""

    def __init__(
        self, workers: int, timeout: float, connections: Connections = own_connections
    ) -> None:
        """
        Args:
            workers: threads for synchronous functions.
            timeout: seconds a function may take. A thread cannot be stopped: after this time
                its caller gets an error, and the thread continues.
            connections: the database connections of those threads.
        """
        self._timeout = timeout
        queue = workers * MAX_QUEUE_PER_WORKER
        self._pool = Pool(workers, queue, "realtime-hook", connections)
        # by default all coroutines of the process share one thread, and a slow query in one
        # stalls all others
        self._threads = ThreadSensitiveContext()
        if threads_can_be_chosen():
            SyncToAsync.context_to_thread_executor[self._threads] = self._pool
        self._calls: set[asyncio.Task[Any]] = set()
        self._overdue: dict[Work, asyncio.Task[Any]] = {}
        """What took too long and may still be under way."""

    async def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        read: Callable[[Any], Any] = lambda answer: answer,
        caller: Caller | None = None,
    ) -> Any:
        """Call a function or coroutine function and return what `read` makes of its result.

        Args:
            function: of the site.
            arguments: its arguments.
            read: runs in the thread of a synchronous function: some results, such as querysets,
                read the database only when they are looked at.
            caller: the client whose command needs the answer. Its overdue calls are limited.

        Raises:
            Error, Disconnect: the function or `read` raised it. Django's PermissionDenied becomes
                ours.
            LimitExceeded: too many calls of this client or user are overdue and still run.
            InternalError: the function failed or took too long, or too many calls wait for a
                thread; the log has the reason.
        """
        work = Work(name_of(function))
        if arguments and isinstance(arguments[0], Request):
            work.about = {"client": arguments[0].client, "user": arguments[0].user}
        if caller is not None:
            work.client, work.user = caller.client, caller.user
            self._check_overdue(work)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        call = self._begin(loop, work, self._call(function, arguments, read))
        try:
            # not `asyncio.timeout`, which waits for a coroutine that does not stop
            await asyncio.wait({call}, timeout=self._timeout)
        except asyncio.CancelledError:
            # the client has left, but its thread continues
            loop.call_at(deadline, self._give_up, work, call)
            raise
        finally:
            in_time = call.done()
            call.cancel()
        if not in_time:
            self._give_up(work, call)
            raise InternalError
        with _errors_of(work):
            return call.result()

    def _begin(
        self, loop: asyncio.AbstractEventLoop, work: Work, calling: Coroutine[Any, Any, Any]
    ) -> asyncio.Task[Any]:
        context = contextvars.copy_context()
        context.run(SyncToAsync.thread_sensitive_context.set, self._threads)
        context.run(current_work.set, work)
        call = loop.create_task(calling, context=context)
        self._calls.add(call)
        call.add_done_callback(self._ended)
        return call

    def _check_overdue(self, work: Work) -> None:
        """Limit what one client, or one user, has under way after its time.

        Raises:
            LimitExceeded: it is too much.
        """
        self._forget_ended()
        overdue = sum(
            other.client == work.client or other.user == work.user != "" for other in self._overdue
        )
        if overdue >= MAX_OVERDUE_PER_CLIENT:
            logger.warning(
                "%s was not called for client %s of user %r: %d earlier calls took too long and"
                " still run",
                work.name,
                work.client,
                work.user,
                overdue,
                extra=work.about,
            )
            raise LimitExceeded

    def _give_up(self, work: Work, call: asyncio.Task[Any]) -> None:
        """Stop waiting for a call whose time is over; log what keeps the threads."""
        if call.done() and not work.executing:
            return
        executing = work.executing
        waiting = self._pool.give_up(work)
        if waiting and not executing:
            logger.error(
                "%s did not begin within %g s, because all threads are in use: %s",
                work.name,
                self._timeout,
                self._executed(),
                extra={**work.about, "duration": self._timeout},
            )
            return
        self._forget_ended()
        self._overdue[work] = call
        about = {**work.about, "duration": self._timeout}
        logger.error("%s took longer than %g s", work.name, self._timeout, extra=about)
        if executing:
            logger.warning("Threads continue after their time: %s", self._executed(overdue=True))

    def _forget_ended(self) -> None:
        for work, call in list(self._overdue.items()):
            if call.done() and not work.executing:
                del self._overdue[work]

    def _executed(self, overdue: bool = False) -> str:
        counts = self._pool.executed(overdue).most_common()
        return ", ".join(f"{name} ({number})" for name, number in counts)

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
            raise RuntimeError("a hook raised SystemExit") from error

    def _ended(self, call: asyncio.Task[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # or asyncio logs it when no caller waits any longer

    async def close(self) -> None:
        """Refuse new calls and give running ones `CLOSE_TIMEOUT` to end."""
        self._pool.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while self._pool.busy:
                    await asyncio.sleep(CLOSE_INTERVAL)


def _in_thread(
    function: Callable[..., Any], arguments: tuple[Any, ...], read: Callable[[Any], Any]
) -> tuple[Any, BaseException | None]:
    """Return the result of a function and None, or None and what it raised.

    It is not raised here, because futures refuse StopIteration and replace some exceptions by
    others without a traceback.
    """
    try:
        answer = function(*arguments)
        return (answer if inspect.isawaitable(answer) else read(answer)), None
    except BaseException as error:
        return None, error


@contextmanager
def _errors_of(work: Work) -> Iterator[None]:
    """Let errors for the client pass; log any other, and raise InternalError in its place."""
    try:
        yield
    except (Error, Disconnect):
        raise
    except DjangoPermissionDenied:
        raise PermissionDenied from None
    except asyncio.CancelledError:
        logger.error("%s was cancelled", work.name, extra=work.about)
        raise InternalError from None
    except Exception:
        logger.exception("%s failed", work.name, extra=work.about)
        raise InternalError from None


# in a thread that may wait


def call(function: Callable[..., Any], argument: Any, read: Callable[[Any], T]) -> T:
    """Call a function or coroutine function and return what `read` makes of its result.

    Raises:
        Error, Disconnect: the function or `read` raised it.
        InternalError: the function or `read` failed; the log has the reason.
    """
    with _errors_of(Work(name_of(function))):
        answer = function(argument)
        if inspect.isawaitable(answer):
            answer = async_to_sync(_wait)(answer)
        return read(answer)


async def _wait(answer: Awaitable[Any]) -> Any:
    return await answer


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name for the log."""
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else repr(function)
