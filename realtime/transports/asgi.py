"""Plain ASGI: the types of its three callables, what they return, and one HTTP exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from realtime.transports.bodies import Incoming

T = TypeVar("T")

Scope: TypeAlias = dict[str, Any]
Event: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
ASGIApplication: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

BEGUN = "realtime.at"
"""Key of a scope: when the request reached the site, Unix seconds."""

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]


CONTENT_TOO_LARGE = 413, b"Content Too Large\n"
REQUEST_TIMEOUT = 408, b"Request Timeout\n"
UNAVAILABLE = 503, b"Service Unavailable\n"


def path_of(scope: Scope) -> str:
    """Return the path of a request below the path at which the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root else path


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this lower-case name; None if there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def cookies(scope: Scope) -> list[tuple[str, str]]:
    """Return name and value of each cookie of a request."""
    texts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
    pairs = (pair.strip().partition("=") for text in texts for pair in text.split(";"))
    return [(name, value) for name, _, value in pairs]


def start(awaitable: Awaitable[T]) -> T | Suspended[T]:
    """Run an awaitable until it waits for something.

    Returns:
        What it returns, if it is done; otherwise the rest of it.

    Raises:
        Exception: whatever the awaitable raises before it waits.
    """
    steps = awaitable.__await__()
    try:
        waiting_for = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    return Suspended(steps, waiting_for)


class Suspended(Generic[T]):
    """An awaitable whose first step is done.

    Coroutines can be thrown into and closed. Servers written in other languages may return plain
    iterators, which cannot.
    """

    def __init__(self, steps: Iterator[Any], waiting_for: Any) -> None:
        self._steps = steps
        self._waiting_for = waiting_for

    def finish_in_task(
        self, loop: asyncio.AbstractEventLoop, done: Callable[[asyncio.Task[T]], None]
    ) -> asyncio.Task[T]:
        """Run the rest in a task, then call `done` with it."""

        def finished(task: asyncio.Task[T]) -> None:
            self._close()
            done(task)

        task = loop.create_task(self._finish())
        task.add_done_callback(finished)
        return task

    async def _finish(self) -> T:
        return await self

    def _close(self) -> None:
        """Close the coroutine, which a task cancelled before its first step leaves open."""
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()

    def __await__(self) -> Generator[Any, Any, T]:
        waiting_for = self._waiting_for
        while True:
            try:
                try:
                    yield waiting_for
                except BaseException as error:
                    throw = getattr(self._steps, "throw", None)
                    if throw is None:
                        raise
                    waiting_for = throw(error)
                else:
                    waiting_for = next(self._steps)
            except StopIteration as done:
                result: T = done.value
                return result


def _is_whole(event: Event) -> bool:
    """Return whether an event has the whole body of a request."""
    return event["type"] == "http.request" and not event.get("more_body", False)


class Exchange:
    """An HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self._receive = receive
        self.send = send
        """The server's own, for a response that a transport writes."""
        self.refusal = CONTENT_TOO_LARGE
        """Status and body of the response where `body` returned None."""
        self._has_ended = False
        """Whether the body has come, or the server may drop the rest of it."""

    # the request

    async def body(self, limit: int | None, *, is_trusted: bool = False) -> bytes | None:
        """Return the body of the request.

        Args:
            limit: largest size in bytes; None for no limit.
            is_trusted: see `HELD_MAX_BYTES`, which does not bound it.

        Returns:
            None if the body is larger or comes too slowly, or if the peer goes before its end.
        """
        first = start(self._receive())
        # most bodies are there, and need no timer
        if not isinstance(first, Suspended) and _is_whole(first):
            self._has_ended = True
            body: bytes = first.get("body", b"")
            return None if limit is not None and len(body) > limit else body
        incoming = Incoming(counts=not is_trusted)
        try:
            return await self._rest(first, limit, incoming)
        except TimeoutError:
            self.refusal = UNAVAILABLE if incoming.is_refused else REQUEST_TIMEOUT
            return None
        finally:
            incoming.end()

    async def _rest(
        self, first: Event | Suspended[Event], limit: int | None, incoming: Incoming
    ) -> bytes | None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        parts: list[bytes] = []
        async with asyncio.timeout_at(began + incoming.seconds) as timeout:

            def refuse() -> None:
                if not timeout.expired():
                    timeout.reschedule(began)

            event = await first if isinstance(first, Suspended) else first
            while event["type"] == "http.request":
                part: bytes = event.get("body", b"")
                self._has_ended = not event.get("more_body", False)
                if not incoming.take(len(part), refuse, is_last=self._has_ended):
                    self.refusal = UNAVAILABLE
                    return None
                if limit is not None and incoming.size > limit:
                    # the peer still writes: a close would be a reset in place of the response
                    self._has_ended = True
                    return None
                parts.append(part)
                if self._has_ended:
                    return b"".join(parts)
                timeout.reschedule(began + incoming.seconds)
                event = await self._receive()
        return None

    async def gone(self) -> None:
        """Wait until the peer has gone. Drops the rest of the body."""
        while (await self._receive())["type"] == "http.request":
            pass

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run a coroutine and return its result; cancel it and return None if the peer goes."""
        working, gone = asyncio.ensure_future(work), asyncio.ensure_future(self.gone())
        try:
            await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
            return await working if working.done() else None
        finally:
            gone.cancel()
            working.cancel()

    # the response, at once

    async def respond(
        self,
        status: int,
        body: bytes = b"",
        content_type: str | None = None,
        headers: Headers = (),
    ) -> None:
        """Send the whole response."""
        fields = [*headers]
        if status != 204:  # which has no length (RFC 9110, 8.6)
            fields.append((b"content-length", b"%d" % len(body)))
        if content_type is not None:
            fields.append((b"content-type", content_type.encode("latin-1")))
        if not self._has_ended and self._leaves_body():
            fields.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body})

    def _leaves_body(self) -> bool:
        """Return whether a server would keep a connection for a body that nobody reads."""
        if not self.scope.get("http_version", "1.1").startswith("1"):
            return False
        length = header(self.scope, b"content-length")
        return length not in (None, "0") or header(self.scope, b"transfer-encoding") is not None

    # the response, in chunks

    async def begin(self, content_type: str, headers: Headers = ()) -> None:
        """Send the status 200 and the headers."""
        fields = [*headers, (b"content-type", content_type.encode("latin-1"))]
        await self.send({"type": "http.response.start", "status": 200, "headers": fields})

    async def write(self, chunk: bytes) -> None:
        """Send a chunk of the body."""
        await self.send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, chunk: bytes = b"") -> None:
        """Send the last chunk of the body."""
        await self.send({"type": "http.response.body", "body": chunk})
