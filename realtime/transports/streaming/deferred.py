"""A response whose head waits: its status says whether the service serves the client.

    waiting ──begin()──► begun ──close()──► ended      status 200, and the stream
       └─────refuse(), close()────────────► ended      another answer, which is no stream

Invariants:
- nothing is sent while the response waits: messages of the client stay in its outbox;
- the first of `begin` and `refuse` counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from realtime.clients.client import Client
from realtime.errors import Disconnect, DisconnectServerError, Error
from realtime.payload import escape
from realtime.protocol.messages import ChannelName
from realtime.transports.streaming.formats import Format
from realtime.transports.streaming.request import StreamRequest
from realtime.transports.streaming.transport import StreamTransport

Answer: TypeAlias = tuple[int, bytes]
"""Status and body of a response that is no stream."""

JSON = "application/json"
NO_STORE = (b"cache-control", b"no-store")
NEEDS_TOKEN = (b"www-authenticate", b"Bearer")

_encode = msgspec.json.Encoder().encode


class DeferredTransport(StreamTransport):
    """A transport whose head is sent by `begin`; until then messages wait."""

    def __init__(
        self,
        request: StreamRequest,
        response_format: Format,
        answer_of_close: Callable[[int, str], Answer],
    ) -> None:
        """
        Args:
            answer_of_close: returns the answer to a client that is closed before it is served.
        """
        super().__init__(request.exchange, response_format)
        self._request = request
        self._format = response_format
        self._answer_of_close = answer_of_close
        self.ready = False
        self.has_begun = False
        self._beginning: asyncio.Event | None = None
        """While the head is on its way; set when it has left."""
        self.answer: Answer | None = None
        """What the client gets in place of a stream."""

    async def begin(self) -> None:
        """Send the head of the response, and what has waited for it."""
        if self._ended.is_set():
            return
        self.has_begun = True
        self._beginning = beginning = asyncio.Event()
        try:
            await self._exchange.begin(self._format.content_type, self._request.stream_headers)
            await self._exchange.write(self._format.opening)
        finally:
            self._beginning = None
            beginning.set()
        self.ready = True
        if self._on_ready is not None:
            self._on_ready()

    def refuse(self, answer: Answer) -> None:
        """End the request with an answer that is no stream. The first answer counts."""
        if not self.has_begun and self.answer is None:
            self.answer = answer
            self._ended.set()

    async def _end(self, code: int, reason: str) -> None:
        if self.has_begun:
            if self._beginning is not None:
                await self._beginning.wait()
                await asyncio.sleep(0)  # the outbox sends what has waited
                await self._until_sent()
                self.ready = False
            await super()._end(code, reason)
        else:
            self.refuse(self._answer_of_close(code, reason))

    async def _answer(self) -> None:
        if self.answer is not None:
            await self.respond(self.answer)

    async def respond(self, answer: Answer) -> None:
        """Send an answer that is no stream."""
        await respond(self._request, answer)

    def fail(self, client: Client, why: Error | Disconnect, answer: Answer) -> None:
        """End a client that is not served: by `answer`, or by `why` if its stream has begun.

        Args:
            why: its code is counted; an error closes a stream that has begun with 3004.
        """
        if self.has_begun:
            client.close(why if isinstance(why, Disconnect) else DisconnectServerError())
            return
        self.refuse(answer)
        if isinstance(why, Disconnect):
            client.close(why)
        else:
            client.close(None, code=why.code)


async def respond(request: StreamRequest, answer: Answer) -> None:
    """Answer a request at once."""
    status, body = answer
    fields = [NO_STORE, *request.cors]
    if status == 401:
        fields.append(NEEDS_TOKEN)
    await request.exchange.respond(status, body, JSON, fields)


def refusal(status: int, code: int, message: str, channel: ChannelName | None = None) -> Answer:
    """Return an answer that says why a client is refused."""
    error: dict[str, object] = {"code": code, "message": message}
    if channel is not None:
        error["channel"] = channel
    return status, escape(_encode({"error": error})) + b"\n"
