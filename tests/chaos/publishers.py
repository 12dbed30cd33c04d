"""Publishers that number what they post, and remember what was acknowledged and what was not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx

from tests.server import API_KEY, Server

DEADLINE = 30.0


async def eventually(condition: Any, what: str, timeout: float = DEADLINE) -> None:
    """Poll a condition that nothing announces; fails when it does not come true in time."""
    deadline = asyncio.get_running_loop().time() + timeout
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"not in {timeout:g} s: {what}"
        await asyncio.sleep(0.02)


class Key(NamedTuple):
    """What identifies a publication: its publisher, and the publisher's number for it."""

    publisher: str
    number: int

    def __str__(self) -> str:
        return f"{self.publisher}/{self.number}"


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that was not acknowledged."""

    seconds: float
    """From the request to the answer, or to the end of patience."""
    error: str
    """The whole reply, or what happened to the connection."""


class Publisher:
    """Posts to one server's /api, and goes on to the next one when it cannot be reached.

    A number is posted once: after a failure nobody knows whether it was published.
    """

    def __init__(
        self,
        name: str,
        servers: Sequence[Server],
        channel: str,
        *,
        batch: int = 1,
        pause: float = 0.01,
        patience: float = 20.0,
    ) -> None:
        """`batch`: commands per request; `pause` and `patience` in seconds: between two
        requests, and for an answer."""
        self.name = name
        self.channel = channel
        self.acknowledged: list[Key] = []
        self.posted_at: dict[Key, float] = {}
        """Loop time at which each was posted."""
        self.unknown: list[Key] = []
        self.failures: list[Failure] = []
        self.posted = 0
        self.slowest = 0.0
        """Seconds that the slowest answer took."""
        self._servers = list(servers)
        self._batch = batch
        self._pause = pause
        self._patience = patience
        self.stopping = False

    def go_on_at(self, server: Server, after: Server) -> None:
        """Name a server as the one to try after another."""
        self._servers.insert(self._servers.index(after) + 1, server)

    async def run(self, total: int | None = None) -> None:
        """Publish until `total` are posted in all, or `stopping` is set.

        A request that is under way by then is seen through.
        """
        async with httpx.AsyncClient(timeout=None, trust_env=False, verify=False) as http:
            while not self.stopping and (total is None or self.posted < total):
                size = self._batch if total is None else min(self._batch, total - self.posted)
                keys = [Key(self.name, self.posted + n) for n in range(size)]
                self.posted += size
                await self._post(http, keys)
                await asyncio.sleep(self._pause)

    async def _post(self, http: httpx.AsyncClient, keys: list[Key]) -> None:
        body = "\n".join(
            json.dumps({"method": "publish", "params": {"channel": self.channel, "data": key}})
            for key in keys
        )
        began = asyncio.get_running_loop().time()
        self.posted_at |= dict.fromkeys(keys, began)
        with self._connection_errors() as errors:
            async with asyncio.timeout(self._patience):
                response = await http.post(
                    f"{self._servers[0].address}/api",
                    content=body,
                    headers={"Authorization": f"apikey {API_KEY}"},
                )
        seconds = asyncio.get_running_loop().time() - began
        self.slowest = max(self.slowest, seconds)
        lines = [] if errors else response.text.splitlines()
        if not errors and (response.status_code != 200 or len(lines) != len(keys)):
            errors.append(f"{response.status_code} {response.text!r}")
        if errors:
            lines = errors * len(keys)
        for key, line in zip(keys, lines, strict=True):
            if not errors and json.loads(line) == {"result": {}}:
                self.acknowledged.append(key)
            else:
                self.unknown.append(key)
                self.failures.append(Failure(seconds, line))

    @contextmanager
    def _connection_errors(self) -> Iterator[list[str]]:
        """Collects what prevented an answer; then it is the next server's turn."""
        errors: list[str] = []
        try:
            yield errors
        except (httpx.HTTPError, TimeoutError) as error:
            errors.append(repr(error))
            self._servers.append(self._servers.pop(0))


class Publishers:
    """Several publishers at work at the same time; the servers and channels take turns."""

    def __init__(
        self, count: int, servers: Sequence[Server], channels: Sequence[str], **options: Any
    ) -> None:
        """`options` are those of `Publisher`."""
        self._servers = list(servers)
        self._channels = list(channels)
        self._options = options
        self._tasks: list[asyncio.Task[None]] = []
        self._markers: list[Publisher] = []
        self.all = [
            Publisher(
                f"p{n}",
                [*servers[n % len(servers) :], *servers[: n % len(servers)]],
                channels[n // len(servers) % len(channels)],
                **options,
            )
            for n in range(count)
        ]

    @property
    def failures(self) -> list[Failure]:
        return [failure for publisher in self.all for failure in publisher.failures]

    def acknowledged(self, channel: str) -> set[Key]:
        return {key for one in self._posting_to(channel) for key in one.acknowledged}

    def posted_after(self, keys: set[Key], moment: float, channel: str) -> set[Key]:
        """Return those of some keys of a channel that were posted after a moment of the loop."""
        return {
            key
            for one in self._posting_to(channel)
            for key in keys & one.posted_at.keys()
            if one.posted_at[key] > moment
        }

    def unknown(self, channel: str) -> set[Key]:
        """What may have been published or not."""
        return {key for one in self._posting_to(channel) for key in one.unknown}

    def _posting_to(self, channel: str) -> list[Publisher]:
        return [one for one in [*self.all, *self._markers] if one.channel == channel]

    def go_on_at(self, server: Server, after: Server) -> None:
        """Name a server to all as the one to try after another."""
        self._servers.insert(self._servers.index(after) + 1, server)
        for publisher in self.all:
            publisher.go_on_at(server, after)

    def start(self, total: int | None = None) -> None:
        """Let each publish `total` publications, or until `stop`; again after a `stop`."""
        for publisher in self.all:
            publisher.stopping = False
        self._tasks += [asyncio.create_task(publisher.run(total)) for publisher in self.all]

    async def progress(self, count: int, timeout: float = DEADLINE) -> None:
        """Wait until each publisher has got `count` more acknowledgements."""
        goals = [(one, len(one.acknowledged) + count) for one in self.all]
        await eventually(
            lambda: all(len(one.acknowledged) >= goal for one, goal in goals),
            f"{count} more acknowledged publications of each publisher",
            timeout,
        )

    async def trouble(self, timeout: float = DEADLINE) -> None:
        """Wait until each publisher has got another failure."""
        goals = [(one, len(one.failures) + 1) for one in self.all]
        await eventually(
            lambda: all(len(one.failures) >= goal for one, goal in goals),
            "a failure of each publisher",
            timeout,
        )

    async def finished(self, timeout: float = DEADLINE) -> None:
        """Wait until the publishers that were started have come to their end."""
        async with asyncio.timeout(timeout):
            await asyncio.gather(*self._tasks)
        self._tasks.clear()

    async def stop(self) -> None:
        """End all publishers and wait for them."""
        for publisher in self.all:
            publisher.stopping = True
        await self.finished()

    async def mark(self, channel: str) -> Key:
        """Publish one more, acknowledged; what was published before it is before it."""
        marker = Publisher(f"mark{len(self._markers)}", self._servers, channel, pause=0.1)
        self._markers.append(marker)
        async with asyncio.timeout(DEADLINE):
            while not marker.acknowledged:
                await marker.run(marker.posted + 1)
        return marker.acknowledged[0]
