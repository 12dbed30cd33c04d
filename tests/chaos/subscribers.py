"""Subscribers that do what client libraries do: come back, recover, go on; and remember it all."""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from websockets.exceptions import WebSocketException

from tests.chaos.publishers import DEADLINE, Key, eventually
from tests.conftest import connection_token
from tests.protocol_client import Closed, ProtocolClient, open_client
from tests.server import Server

RETRY_PAUSE = 0.1
"""Seconds between two attempts to connect."""


class Received(NamedTuple):
    """One publication as it was received."""

    epoch: str
    offset: int
    key: Key


class Refused(Exception):
    """A command got an error; the argument is the reply."""


class Subscriber:
    """One client. Runs until it is stopped, or told not to come back."""

    def __init__(
        self, name: str, servers: Sequence[Server], channels: Sequence[str], format_name: str
    ) -> None:
        self.name = name
        self.channels = list(channels)
        self.format = format_name
        self.received: Mapping[str, list[Received]] = defaultdict(list)
        """Channel → its publications, in the order in which they came."""
        self.recovered: Mapping[str, list[bool]] = defaultdict(list)
        """Channel → what was said about every recovery."""
        self.beginnings: Mapping[str, list[int]] = defaultdict(list)
        """Channel → how many publications it had, each time it was told to begin anew."""
        self.told_at: dict[str, float] = defaultdict(lambda: -math.inf)
        """Channel → loop time at which it was last told to begin anew."""
        self.closes: list[int] = []
        """The codes of the ends of its subscribed connections; 1006 when there was no frame."""
        self.refusals: list[str] = []
        """What kept it from being subscribed: errors, and closes before that."""
        self.ended = ""
        """Why it will not come back."""
        self._servers = list(servers)
        self._positions: dict[str, dict[str, Any]] = {}
        self._live: set[str] = set()
        self._client: ProtocolClient | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.format})"

    @property
    def is_live(self) -> bool:
        """Whether it is subscribed to all its channels now."""
        return len(self._live) == len(self.channels)

    @property
    def story(self) -> str:
        """What happened to it, for messages."""
        return (
            f"{self}: closed with {self.closes}, recovered {dict(self.recovered)},"
            f" refused {self.refusals}, {self.ended or 'not ended'}"
        )

    def has(self, channel: str, key: Key) -> bool:
        """Whether this publication is among the latest it received."""
        return any(one.key == key for one in self.received[channel][-1000:])

    def go_on_at(self, server: Server, after: Server) -> None:
        """Name a server as the one to try after another."""
        self._servers.insert(self._servers.index(after) + 1, server)

    async def cut(self) -> None:
        """Cut its connection."""
        assert self._client is not None
        await self._client.abort()

    async def run(self) -> None:
        """Connect, subscribe, read; and again, with the next server, until told not to."""
        while not self.ended:
            try:
                await self._connect()
            except Closed as closed:
                if self._live:
                    self.closes.append(closed.code)
                else:
                    self.refusals.append(f"{closed.code} {closed.reason}")
                if closed.reason and not json.loads(closed.reason)["reconnect"]:
                    self.ended = f"told not to come back: {closed.code} {closed.reason}"
            except Refused as refused:
                self.refusals.append(str(refused))
            except (OSError, TimeoutError, WebSocketException):
                pass  # nobody there, or not yet
            self._live.clear()
            self._servers.append(self._servers.pop(0))
            await asyncio.sleep(RETRY_PAUSE)

    async def _connect(self) -> None:
        url = self._servers[0].socket
        async with open_client(url, format_name=self.format, connected=False) as client:
            await self._result(client, "connect", {"token": connection_token(self.name)})
            for channel in self.channels:
                await self._subscribe(client, channel)
            self._client = client
            while True:
                await self._read(client)

    async def _result(
        self, client: ProtocolClient, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        reply = await client.call(method, params)
        if "error" in reply:
            raise Refused(f"{method}: {reply['error']}")
        result: dict[str, Any] = reply["result"]
        return result

    async def _subscribe(self, client: ProtocolClient, channel: str) -> None:
        position = self._positions.get(channel)
        params = {"channel": channel} | ({"recover": True} | position if position else {})
        result = await self._result(client, "subscribe", params)
        if position:
            self.recovered[channel].append(result.get("recovered", False))
            if not self.recovered[channel][-1]:
                self.beginnings[channel].append(len(self.received[channel]))
                self.told_at[channel] = asyncio.get_running_loop().time()
        self._positions[channel] = {"offset": result.get("offset", 0), "epoch": result["epoch"]}
        for publication in result.get("publications", []):
            self._keep(channel, publication)
        self._live.add(channel)

    async def _read(self, client: ProtocolClient) -> None:
        try:
            push = await client.push()
        except TimeoutError:
            return  # a long silence is no loss
        assert push.get("type", 0) == 0, push
        self._keep(push["channel"], push["data"])
        self._positions[push["channel"]]["offset"] = push["data"]["offset"]
        client.frames.clear()
        client.received.clear()

    def _keep(self, channel: str, publication: Mapping[str, Any]) -> None:
        epoch = self._positions[channel]["epoch"]
        self.received[channel].append(
            Received(epoch, publication["offset"], Key(*publication["data"]))
        )


class Subscribers:
    """Dozens of clients. They begin at the servers in turn; every sixth speaks Protobuf.

    With several channels every third client subscribes to all, the others to one each.
    """

    def __init__(self, count: int, servers: Sequence[Server], channels: Sequence[str]) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.all = [
            Subscriber(
                f"s{n}",
                [*servers[n % len(servers) :], *servers[: n % len(servers)]],
                channels if n % 3 == 0 else [channels[n // 3 % len(channels)]],
                "protobuf" if n % 6 == 5 else "json",
            )
            for n in range(count)
        ]

    @property
    def closes(self) -> list[int]:
        """The code of every close frame anybody got."""
        return [code for subscriber in self.all for code in subscriber.closes]

    @property
    def recovered(self) -> list[bool]:
        """What anybody was told about any recovery."""
        return [
            flag
            for subscriber in self.all
            for flags in subscriber.recovered.values()
            for flag in flags
        ]

    def go_on_at(self, server: Server, after: Server) -> None:
        """Name a server to all as the one to try after another."""
        for subscriber in self.all:
            subscriber.go_on_at(server, after)

    def of(self, channel: str) -> list[Subscriber]:
        return [subscriber for subscriber in self.all if channel in subscriber.channels]

    async def start(self) -> None:
        """Start all; returns once all are subscribed."""
        self._tasks = [asyncio.create_task(subscriber.run()) for subscriber in self.all]
        await self.live()

    async def live(self, timeout: float = DEADLINE) -> None:
        """Wait until all are subscribed to all their channels."""
        await eventually(
            lambda: all(subscriber.is_live for subscriber in self.all),
            "all subscribers are subscribed",
            timeout,
        )

    async def stop(self) -> None:
        """End all; raises what a subscriber did not expect."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
