"""SockJS as a client speaks it: transports, frames, sessions."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.live.raw_http import Answer, Exchange, open_exchange
from tests.server import Server

PREFIX = "/connection/sockjs"
SERVERS = ("daphne", "uvicorn")

OPTIONS: Mapping[str, Any] = {
    "client_insecure": True,
    "presence": True,
    "v3_use_offset": True,
    "namespaces": [
        {
            "name": "kept",
            "publish": True,
            "history_size": 100,
            "history_lifetime": 300,
            "history_recover": True,
        },
        {"name": "joins", "presence": True, "join_leave": True},
    ],
}
"""Options of the shared servers."""

ALLOWED_ORIGIN = "https://site.example"
QUICK: Mapping[str, Any] = {
    "client_insecure": True,
    "allowed_origins": [ALLOWED_ORIGIN],
    "client_stale_close_delay": 2,
    "sockjs_heartbeat_delay": 1,
    "sockjs_iframe": True,
}
"""Options of the shared servers on which nothing takes long."""

OPEN, HEARTBEAT = "o", "h"
BUSY = 'c[2010,"Another connection still open"]'
INTERRUPTED = 'c[1002,"Connection interrupted"]'
BAD_REQUEST = r'c[3003,"{\"reason\":\"bad request\",\"reconnect\":false}"]'
SHUTDOWN = r'c[3001,"{\"reason\":\"shutdown\",\"reconnect\":true}"]'
STALE = r'c[3007,"{\"reason\":\"stale\",\"reconnect\":false}"]'
FORCED = r'c[3012,"{\"reason\":\"force disconnect\",\"reconnect\":false}"]'

SCRIPT = "application/javascript; charset=UTF-8"
HTML = "text/html; charset=UTF-8"


async def request(
    server: Server,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send a request below the prefix and read all of the response."""
    exchange = await open_exchange(server, method, PREFIX + path, body, headers)
    try:
        await exchange.begin(method)
        assert "set-cookie" not in exchange.headers, "SockJS sets no cookies"
        return Answer(exchange.status, exchange.headers, await exchange.rest())
    finally:
        await exchange.close()


# transports


@dataclass(frozen=True)
class Transport:
    """How a transport that receives is asked for, and how frames look in its responses."""

    name: str
    method: str
    content_type: str
    begin: str = ""
    end: str = "\n"
    literal: bool = False
    """Whether frames are JavaScript strings."""
    query: str = ""
    prelude_end: str = ""
    """What the prelude ends with; "" for none."""

    def wrap(self, frame: str) -> str:
        """An ASCII frame without unsafe characters, as it stands in a response."""
        return self.begin + (json.dumps(frame) if self.literal else frame) + self.end

    def unwrap(self, text: str) -> str:
        """The frame in a piece of a response."""
        assert text.startswith(self.begin), text
        assert text.endswith(self.end), text
        inside = text.removeprefix(self.begin).removesuffix(self.end)
        frame: str = json.loads(inside) if self.literal else inside
        return frame


XHR = Transport("xhr", "POST", SCRIPT)
JSONP = Transport("jsonp", "GET", SCRIPT, "callback(", ");\r\n", True, "?c=callback")
XHR_STREAMING = Transport("xhr_streaming", "POST", SCRIPT, prelude_end="h\n")
EVENTSOURCE = Transport(
    "eventsource",
    "GET",
    "text/event-stream; charset=UTF-8",
    "data: ",
    "\r\n\r\n",
    prelude_end="\r\n",
)
HTMLFILE = Transport(
    "htmlfile",
    "GET",
    HTML,
    "<script>\np(",
    ");\n</script>\r\n",
    True,
    "?c=callback",
    prelude_end="\r\n\r\n",
)
POLLING = (XHR, JSONP)
STREAMING = (XHR_STREAMING, EVENTSOURCE, HTMLFILE)
RECEIVING = (*POLLING, *STREAMING)


def name_of(transport: Transport) -> str:
    """What a test for this transport is called."""
    return transport.name


# sessions


class Receiver:
    """A request that receives, and the frames in its response."""

    def __init__(self, exchange: Exchange, transport: Transport) -> None:
        self._transport = transport
        self.exchange = exchange
        self.prelude = b""

    async def begin(self) -> None:
        """Read the head of the response and what comes before the first frame."""
        await self.exchange.begin()
        assert self.exchange.status == 200
        assert "set-cookie" not in self.exchange.headers, "SockJS sets no cookies"
        if self._transport.prelude_end:
            self.prelude = await self.exchange.read_until(self._transport.prelude_end.encode())

    async def frame(self) -> str:
        """The next frame."""
        part = await self.exchange.read_until(self._transport.end.encode())
        return self._transport.unwrap(part.decode())

    async def replies(self) -> list[dict[str, Any]]:
        """The replies and pushes in the next frame."""
        return replies(await self.frame())

    async def end(self) -> None:
        """The response ends, and nothing comes before."""
        assert await self.exchange.rest() == b""


class Session:
    """A session, as the client of a server."""

    def __init__(self, server: Server, name: str | None = None, srv: str = "000") -> None:
        """`name`: as it stands in the path; a new one if it is not given."""
        self.server = server
        self.name = uuid.uuid4().hex if name is None else name
        self.srv = srv
        self.headers: dict[str, str] = {}
        """Of every request."""
        self._commands = 0

    def path(self, what: str) -> str:
        """A path of the session, below the prefix."""
        return f"/{self.srv}/{self.name}/{what}"

    async def ask(self, transport: Transport = XHR, **headers: str) -> Exchange:
        """Send a request that receives; nothing of the response is read yet."""
        return await open_exchange(
            self.server,
            transport.method,
            PREFIX + self.path(transport.name) + transport.query,
            b"" if transport.method == "POST" else None,
            self.headers | headers,
        )

    @asynccontextmanager
    async def receive(
        self, transport: Transport = XHR_STREAMING, **headers: str
    ) -> AsyncIterator[Receiver]:
        """Receive by a transport, for the length of a block."""
        receiver = Receiver(await self.ask(transport, **headers), transport)
        try:
            await receiver.begin()
            yield receiver
        finally:
            await receiver.exchange.close()

    async def poll(self, transport: Transport = XHR, **headers: str) -> str:
        """One polling request; returns its frame."""
        async with self.receive(transport, **headers) as receiver:
            frame = await receiver.frame()
            await receiver.end()
            return frame

    async def open(self, transport: Transport = XHR, **headers: str) -> Session:
        """Begin the session with a polling request."""
        assert await self.poll(transport, **headers) == OPEN
        return self

    async def post(
        self, body: bytes, headers: Mapping[str, str] | None = None, what: str = "xhr_send"
    ) -> Answer:
        """Send a body as it is."""
        return await request(
            self.server, "POST", self.path(what), body, {**self.headers, **(headers or {})}
        )

    async def send(self, *frames: str, **headers: str) -> None:
        """Send frames of the protocol, which must be taken."""
        answer = await self.post(json.dumps(frames).encode(), headers)
        assert (answer.status, answer.body) == (204, b""), answer

    async def command(self, method: str, **params: Any) -> int:
        """Send a command; returns its id."""
        self._commands += 1
        await self.send(command(self._commands, method, **params))
        return self._commands

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command by polling and wait for its reply, which must come in the next frame."""
        number = await self.command(method, **params)
        [reply] = replies(await self.poll())
        assert reply["id"] == number, reply
        assert "error" not in reply, reply
        result: dict[str, Any] = reply.get("result", {})
        return result


async def connected(server: Server, channel: str = "") -> Session:
    """A session whose client is connected, and subscribed to a channel if there is one."""
    session = await Session(server).open()
    await session.result("connect")
    if channel:
        await session.result("subscribe", channel=channel)
    return session


def command(number: int, method: str, **params: Any) -> str:
    """A command as a frame of the protocol."""
    return json.dumps({"id": number, "method": method, "params": params})


def messages(frame: str) -> list[str]:
    """The frames of the protocol in a SockJS frame."""
    assert frame.startswith("a"), frame
    inside: list[str] = json.loads(frame.removeprefix("a"))
    return inside


def replies(frame: str) -> list[dict[str, Any]]:
    """The replies and pushes in a SockJS frame."""
    lines: list[str] = []
    for message in messages(frame):
        assert message.endswith("\n"), message
        lines += message.removesuffix("\n").split("\n")
    return [json.loads(line) for line in lines]


def data_of(pushes: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the data of pushes, which must be publications."""
    return [push["result"]["data"]["data"] for push in pushes]
