"""Plain ASGI: the types of its three callables, and one HTTP request with its response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Scope: TypeAlias = dict[str, Any]
Event: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
ASGIApplication: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

BEGUN = "realtime.at"
"""Key of a scope: when the request reached the site, Unix seconds."""

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]


def path_of(scope: Scope) -> str:
    """Return the path of a request below the path at which the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root else path


class Exchange:
    """An HTTP request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self._receive = receive
        self.send = send
        """The server's own, for a response that a transport writes."""

    # the request

    async def body(self, limit: int | None) -> bytes | None:
        """Return the body of the request.

        Args:
            limit: largest size in bytes; None for no limit.

        Returns:
            None if the body is larger, or if the peer goes before its end.
        """
        parts: list[bytes] = []
        size = 0
        while True:
            event = await self._receive()
            if event["type"] != "http.request":
                return None
            part: bytes = event.get("body", b"")
            size += len(part)
            if limit is not None and size > limit:
                return None
            parts.append(part)
            if not event.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

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
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body})

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
