"""Clients of maps that do what centrifuge-js does: read, follow, come back; and remember it all."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.conftest import connection_token
from tests.server import Server

RETRY_PAUSE = 0.1
UNRECOVERABLE = 112
RESUBSCRIBE = 2500
"""From this code of an unsubscribe on, the client subscribes again."""
REPLY_TIMEOUT = 15.0


class Refused(Exception):
    """A command got an error; the argument is its code."""


class MapClient:
    """One client of one map. Runs until its task is cancelled."""

    def __init__(self, name: str, servers: Sequence[Server], channel: str) -> None:
        self.name, self.channel = name, channel
        self.entries: dict[str, Any] = {}
        """The map, as this client has it."""
        self.complaints: list[str] = []
        """What should not have happened."""
        self.counts = {"reads": 0, "recoveries": 0, "requests": 0, "changes": 0, "removals": 0}
        self.refusals: list[str] = []
        self.is_live = False
        self.removed_at: dict[str, float] = {}
        """Key -> loop time of its last removal."""
        self._servers = list(servers)
        self._position: dict[str, Any] | None = None
        self._socket: ClientConnection | None = None
        self._next = 0
        self._behind: list[dict[str, Any]] = []
        """Messages that came in one frame with a reply, and behind it."""

    def go_on_at(self, server: Server, after: Server) -> None:
        """Name a server as the one to try after another."""
        self._servers.insert(self._servers.index(after) + 1, server)

    async def cut(self) -> None:
        """Cut its connection."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def run(self) -> None:
        """Connect, subscribe, read; and again, with the next server."""
        while True:
            try:
                async with connect(self._servers[0].socket, proxy=None, max_size=None) as socket:
                    self._socket = socket
                    await self._call("connect", token=connection_token(self.name))
                    await self._subscribe()
                    while True:
                        await self._receive(json.loads(line) for line in await self._lines())
            except Refused as refused:
                self.refusals.append(str(refused))
            except (OSError, TimeoutError, WebSocketException):
                pass  # no server, or not yet
            finally:
                self.is_live, self._socket = False, None
            self._servers.append(self._servers.pop(0))
            await asyncio.sleep(RETRY_PAUSE * random.random())

    async def _lines(self) -> list[str]:
        assert self._socket is not None
        async with asyncio.timeout(40):  # pings come more often
            return str(await self._socket.recv(decode=True)).splitlines()

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; return its result. Pushes before the reply are received."""
        assert self._socket is not None
        self._next += 1
        await self._socket.send(json.dumps({"id": self._next, method: params}))
        async with asyncio.timeout(REPLY_TIMEOUT):
            while True:
                messages = [json.loads(line) for line in await self._lines()]
                for number, message in enumerate(messages):
                    if message.get("id") == self._next:
                        if "error" in message:
                            raise Refused(message["error"]["code"])
                        self._behind = messages[number + 1 :]
                        result: dict[str, Any] = message[method]
                        return result
                    await self._receive([message])

    async def _subscribe(self) -> None:
        while True:
            try:
                result = await (self._recover() if self._position else self._read())
                break
            except Refused as refused:
                if refused.args[0] != UNRECOVERABLE:
                    raise
                self.entries, self._position = {}, None
        for publication in result.get("publications", ()):
            self._apply(publication)
        if result.get("recoverable"):
            self._position = {"offset": result.get("offset", 0), "epoch": result["epoch"]}
        self.is_live = True
        behind, self._behind = self._behind, []
        await self._receive(behind)

    async def _recover(self) -> dict[str, Any]:
        self.counts["recoveries"] += 1
        flow = {"channel": self.channel, "type": 1, "phase": 1, "flag": 1, "recover": True}
        return await self._call("subscribe", **flow, **(self._position or {}))

    async def _read(self) -> dict[str, Any]:
        """Read all pages. Return the last reply, with the publications after the first page."""
        self.counts["reads"] += 1
        entries: dict[str, Any] = {}
        page: dict[str, Any] = {}
        while True:
            self.counts["requests"] += 1
            flow = {"channel": self.channel, "type": 1, "phase": 2, "flag": 1, "limit": 1000}
            page = await self._call("subscribe", **flow, **page)
            for entry in page.get("state", ()):
                if entry["key"] in entries:
                    self.complaints.append(f"{entry['key']} is in two pages")
                entries[entry["key"]] = entry["data"]
            if page.get("phase") != 2:
                self.entries = entries
                self._position = None
                return page
            page = {name: page[name] for name in ("cursor", "offset", "epoch") if name in page}

    async def _receive(self, messages: Any) -> None:
        for message in messages:
            if not message:
                assert self._socket is not None
                await self._socket.send("{}")
                continue
            push = message.get("push", {})
            if push.get("channel") != self.channel:
                continue
            if "pub" in push and self.is_live:
                self._follow(push["pub"])
            elif "unsubscribe" in push:
                self.is_live = False
                if push["unsubscribe"]["code"] < RESUBSCRIBE:
                    self.complaints.append(f"unsubscribed: {push['unsubscribe']}")
                await self._subscribe()

    def _follow(self, publication: Mapping[str, Any]) -> None:
        if self._position is not None:
            expected = self._position["offset"] + 1
            if publication.get("offset") != expected:
                self.complaints.append(f"offset {publication.get('offset')}, not {expected}")
            self._position["offset"] = publication.get("offset")
        self._apply(publication)

    def _apply(self, publication: Mapping[str, Any]) -> None:
        key = publication["key"]
        self.counts["changes"] += 1
        if publication.get("removed"):
            self.counts["removals"] += 1
            self.removed_at[key] = asyncio.get_running_loop().time()
            # without positions a put may be lost before the client is told to read again
            if self.entries.pop(key, None) is None and self.is_live and self._position:
                self.complaints.append(f"{key} was removed twice")
            return
        before = self.entries.get(key)
        if self.is_live and before is not None and publication["data"] < before:
            self.complaints.append(f"{key} went back from {before} to {publication['data']}")
        self.entries[key] = publication["data"]
