"""Large bodies under daphne: the application reads them from the file in which daphne keeps them.

daphne writes a large body into a temporary file. Then it reads the whole file into the queue of the
application, in one turn of the event loop. Here the file looks empty to daphne, and
`BodyReader`, in front of the application, reads it piece by piece as the application asks for it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable
from typing import IO, Any

from realtime.transports.asgi import ASGIApplication, Event, Receive, Scope, Send

CHUNK_BYTES = 64 * 1024


class SpooledBody:
    """A body in a file, which daphne finds empty."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._is_begun = False
        self._is_over = False

    # for daphne and Twisted

    def seek(self, *position: int) -> None:
        """Do nothing. The file is at its begin."""

    def read(self, size: int = -1) -> bytes:
        """Return nothing."""
        return b""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def closed(self) -> bool:
        """Whether the file was closed, because the peer has gone or has its response."""
        return self._file.closed

    # for the application

    async def next_event(self, receive: Receive) -> Event:
        """Return the next event of the request.

        Args:
            receive: daphne's own, which has one event for the body, without content.
        """
        if self._is_over:
            return await receive()
        if not self._is_begun:
            event = await receive()
            if event["type"] != "http.request":
                return event
            self._is_begun = True
        await asyncio.sleep(0)  # reading from a file never waits
        if self._file.closed:
            self._is_over = True
            return await receive()
        chunk = self._file.read(CHUNK_BYTES)
        self._is_over = len(chunk) < CHUNK_BYTES
        return {"type": "http.request", "body": chunk, "more_body": not self._is_over}


class BodyReader:
    """The application of a daphne server, with bodies in files read as it asks for them."""

    def __init__(self, application: ASGIApplication) -> None:
        self._application = application

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Any]:
        body = _spooled_body(send)
        if body is not None:
            receive = functools.partial(body.next_event, receive)
        return self._application(scope, receive, send)


def _spooled_body(send: Send) -> SpooledBody | None:
    if isinstance(send, functools.partial) and send.args:
        content = getattr(send.args[0], "content", None)
        if isinstance(content, SpooledBody):
            return content
    return None
