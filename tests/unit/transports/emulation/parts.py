"""Shared by the tests of emulation: receivers, sessions, requests to a node."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine.base import Engine
from realtime.node.hooks import NO_HANDSHAKE
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.transports.emulation.incoming import MAX_WAITING_BYTES
from realtime.transports.emulation.session import EmulatedSession
from realtime.transports.sockjs.application import SockJS
from realtime.transports.sockjs.framing import SOCKJS
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, data, eventually
from tests.unit.transports.streaming.visits import Visit

PREFIX = "/connection/sockjs"
HEARTBEAT_DELAY = 25
OPTIONS: Mapping[str, Any] = {
    "client_insecure": True,
    "v3_use_offset": True,
    "sockjs_heartbeat_delay": HEARTBEAT_DELAY,
    "client_stale_close_delay": 100_000,
    "websocket_message_size_limit": 1_000_000,  # more than sessions take at a time
    "client_command_rates": "",
    "overload_lag": 0,  # clocks of tests jump
    "namespaces": [{"name": "present", "presence": True}],
}
STREAMING_BYTES = 128 * 1024
"""After which a streaming response ends (docs/protocol.md, 8)."""

OPEN, HEARTBEAT = "o", "h"
INTERRUPTED = 'c[1002,"Connection interrupted"]'
BUSY = 'c[2010,"Another connection still open"]'
SHUTDOWN = r'c[3001,"{\"reason\":\"shutdown\",\"reconnect\":true}"]'
FORCED = r'c[3012,"{\"reason\":\"force disconnect\",\"reconnect\":false}"]'

CONNECT = '{"id":1}'
PING = '{"id":%d,"method":7}'
LARGE = PING + " " * MAX_WAITING_BYTES
"""A command so large that no more are taken until it is handled."""
ABANDONED = 'c[3000,"Go away!"]'


def subscribe_command(channel: str) -> str:
    return json.dumps({"id": 2, "method": 1, "params": {"channel": channel}})


class Reading:
    """A `FrameReceiver` that keeps what is written."""

    def __init__(self, limit: int = STREAMING_BYTES) -> None:
        """`limit`: bytes of frames after which it is full; 0: after one frame."""
        self.limit = limit
        self.finishing = False
        self.there = True
        """The answer of `is_there`."""
        self.frames: list[str] = []

    def write(self, frame: bytes) -> None:
        assert not self.finishing, "it takes no more"
        self.frames.append(frame.decode())
        if sum(map(len, self.frames)) >= self.limit:
            self.finishing = True

    def finish(self) -> None:
        self.finishing = True

    async def is_there(self) -> bool:
        return self.there


class Case:
    """A session, and how often it was forgotten."""

    def __init__(self, node: Node) -> None:
        ended: list[None] = []  # the session must not hold this, which holds the session
        self._ended = ended
        self.session = EmulatedSession(
            node,
            SOCKJS,
            NO_HANDSHAKE,
            ended=lambda: None,
            forget=lambda: ended.append(None),
        )

    @property
    def ends(self) -> int:
        return len(self._ended)

    async def attach(self, limit: int = STREAMING_BYTES) -> Reading:
        reading = Reading(limit)
        await self.session.attach(reading)
        return reading

    async def poll(self) -> str:
        """Receive one frame in a polling request that ends in order."""
        reading = await self.attach(0)
        await eventually(lambda: reading.finishing)
        self.session.detach(reading, interrupted=False)
        [frame] = reading.frames
        return frame

    async def say(self, *frames: str) -> bool:
        return await self.session.deliver([frame.encode() for frame in frames])

    async def subscribe(self, channel: str = "a") -> None:
        """Open, connect and subscribe; read the replies."""
        assert await self.poll() == OPEN
        assert await self.say(CONNECT, subscribe_command(channel))
        answered: list[int] = []
        while 2 not in answered:
            answered += ids_in([await self.poll()])


def ids_in(frames: list[str]) -> list[int]:
    """The ids of the commands answered in frames."""
    messages = [text for frame in frames if frame[0] == "a" for text in json.loads(frame[1:])]
    return [json.loads(line)["id"] for text in messages for line in text.splitlines()]


# requests, as a server hands them to the application

TRANSPORTS: Mapping[str, tuple[str, str, bool]] = {
    "xhr": ("POST", r"(.*)\n", False),
    "xhr_streaming": ("POST", r"(.*)\n", False),
    "xhr_send": ("POST", r"(.*)\n", False),
    "jsonp_send": ("POST", r"(.*)\n", False),
    "eventsource": ("GET", r"data: (.*)\r\n\r\n", False),
    "htmlfile": ("GET", r"<script>\np\((.*)\);\n</script>\r\n", True),
}
"""Transport → verb, a frame in its response, and whether it is a JavaScript string there."""


class Request(Visit):
    """A request to a node, and the response so far."""

    def __init__(
        self,
        application: SockJS,
        node: Node,
        session: str,
        transport: str,
        body: bytes = b"",
        cookie: str = "",
    ) -> None:
        verb, self._frame, self._is_string = TRANSPORTS[transport]
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "cookie": cookie,
            # of a page of this site: no other may use the cookie
            "sec-fetch-site": "same-origin",
        }
        path = f"{PREFIX}/000/{session}/{transport}"
        super().__init__(application, node, path, "c=callback", body, headers, verb)

    @property
    def ended(self) -> bool:
        """Whether the response ended in order."""
        return bool(self.sent) and not self.sent[-1].get("more_body", len(self.sent) == 1)

    async def quit(self) -> None:
        """Close the connection as the client, and wait for the end of the response."""
        self.leave()
        await self.end()

    @property
    def frames(self) -> list[str]:
        """The frames that came, but for the prelude."""
        found: list[str] = re.findall(self._frame, self.text)
        if self._is_string:
            found = [json.loads(literal) for literal in found]
        return [frame for frame in found if frame != "h" * 2048]

    async def has(self, *frames: str) -> None:
        """Wait for exactly these frames."""
        await eventually(lambda: len(self.frames) >= len(frames) or self.serving.done())
        assert self.frames == [*frames]

    async def end(self) -> list[str]:
        """Wait for the end; returns the frames."""
        await eventually(self.serving.done)
        await self.serving
        return self.frames


class Visitor:
    """The client of one session, whose requests may go to any node."""

    def __init__(self, application: SockJS, name: str) -> None:
        self._application = application
        self.name = name
        self.cookie = ""

    def receive(self, node: Node, transport: str = "xhr_streaming") -> Request:
        return Request(self._application, node, self.name, transport, cookie=self.cookie)

    async def poll(self, node: Node) -> str:
        """One polling request; returns its frame."""
        [frame] = await self.receive(node, "xhr").end()
        return frame

    def send(self, node: Node, *frames: str) -> Request:
        body = json.dumps(frames).encode()
        return Request(self._application, node, self.name, "xhr_send", body, self.cookie)

    async def say(self, node: Node, *frames: str) -> int:
        """Send frames; returns the status."""
        request = self.send(node, *frames)
        await request.end()
        return request.status


def data_in(frames: Sequence[str]) -> list[Any]:
    """Return the data of publications in frames that may hold replies, too."""
    lines = [
        json.loads(line)
        for frame in frames
        if frame.startswith("a")
        for message in json.loads(frame[1:])
        for line in message.splitlines()
    ]
    return [line["result"]["data"]["data"] for line in lines if "id" not in line]


async def publish(node: Node, channel: str, value: Any) -> None:
    await node.publish(channel, data(json.dumps(value)), ChannelOptions())


@asynccontextmanager
async def open_node(
    clock: Clock, engine: Engine | None = None, **options: Any
) -> AsyncIterator[Node]:
    """A node that was started; stopped at the end. `options`: besides OPTIONS."""
    node = Node(load({**OPTIONS, **options}), engine)
    await node.start()
    yield node
    await stop(node, clock, SHUTDOWN_TIMEOUT)
