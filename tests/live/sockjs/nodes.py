"""SockJS sessions whose requests come to any of several servers, as behind a load balancer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import cycle
from typing import Any

from tests.live.api_client import line, post
from tests.live.clusters import Cluster
from tests.live.configurations import Options
from tests.live.raw_http import Answer, Exchange
from tests.live.sockjs.client import (
    HEARTBEAT,
    OPEN,
    XHR,
    Session,
    Transport,
    replies,
)
from tests.server import Server

TIMEOUT = 20.0
"""Seconds that a condition without an event may take on a busy machine."""

NODES: Options = {
    "client_insecure": True,
    "v3_use_offset": True,
    "namespaces": [
        {
            "name": "long",
            "publish": True,
            "history_recover": True,
            "history_size": 5000,
            "history_lifetime": 60,
        },
    ],
}
ONE_SERVICE: Options = {**NODES, "redis_prefix": "sockjs-at-many-nodes"}
"""Servers started with these options belong to one service."""


def four_servers(shared_cluster: Cluster) -> list[Server]:
    """Two daphnes and two uvicorns of one service."""
    return [
        server
        for kind in ("daphne", "uvicorn")
        for server in shared_cluster(server=kind, **ONE_SERVICE)
    ]


class Wanderer(Session):
    """A session whose requests go to several servers."""

    def __init__(self, receiving: Iterable[Server], sending: Iterable[Server] = ()) -> None:
        """`receiving`: the servers that requests come to, again and again from the first one.
        `sending`: those that requests come to that send, where they are others."""
        super().__init__(next(iter(receiving)))
        self.move(receiving, sending)
        self.received: list[Any] = []
        """The data of the publications that polls received, in order."""

    def move(self, receiving: Iterable[Server], sending: Iterable[Server] = ()) -> None:
        """From now on, requests come to these servers."""
        self._receiving = cycle(receiving)
        self._sending = cycle(sending) if sending else self._receiving

    async def ask(self, transport: Transport = XHR, **headers: str) -> Exchange:
        self.server = next(self._receiving)
        return await super().ask(transport, **headers)

    async def post(self, body: bytes, headers: Any = None, what: str = "xhr_send") -> Answer:
        self.server = next(self._sending)
        return await super().post(body, headers, what)

    async def subscribe(self, channel: str, **params: Any) -> dict[str, Any]:
        """Begin the session, connect and subscribe, all by polling; returns the result."""
        assert await self.poll() == OPEN
        await self.command("connect")
        number = await self.command("subscribe", channel=channel, **params)
        while True:
            for reply in replies(await self.poll()):
                assert "error" not in reply, reply
                if reply.get("id") == number:
                    result: dict[str, Any] = reply.get("result", {})
                    return result

    async def poll_publications(self, number: int) -> None:
        """Poll until this many publications have been received; they are in `received`."""
        while len(self.received) < number:
            self.received += publications(await self.poll())


def publications(frame: str) -> list[Any]:
    """Return the data of publications in a frame that may hold replies, too."""
    if frame == HEARTBEAT:
        return []
    return [
        reply["result"]["data"]["data"]
        for reply in replies(frame)
        if "id" not in reply and "type" not in reply["result"]
    ]


async def publish_all(server: Server, channel: str, values: Iterable[Any]) -> None:
    """Publish many in one request to the server API, in their order."""
    commands = b"".join(line("publish", {"channel": channel, "data": value}) for value in values)
    answer = await asyncio.to_thread(post, server, commands)
    assert all(reply == {"result": {}} for reply in answer.replies), answer
