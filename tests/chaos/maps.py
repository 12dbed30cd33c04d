"""Maps under faults: puts, joiners, cuts, killed nodes, a restart of Redis; then each map is equal.

    python -m tests.chaos.maps [--keys 10000] [--puts 200] [--joiners 50] [--seconds 60]

Three nodes share a Redis. Each client keeps a copy of a map, and complains about gaps, values that
go back, and keys that are removed twice. At the end come expiry after the death of a node, `if_new`
from many processes, and increments by `expect`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.chaos.map_clients import MapClient
from tests.live.processes import SET_UP, environment
from tests.redis_server import RedisServer
from tests.server import API_KEY, ROOT, Server

TTL = 20
OPTIONS: dict[str, Any] = {
    "namespaces": [
        {"name": "kept", "map": "persistent", "map_max_keys": 100_000},
        {"name": "rec", "map": "recoverable", "map_key_ttl": TTL},
        {"name": "eph", "map": "ephemeral", "map_key_ttl": TTL},
    ]
}
CHANNELS = ("kept:1", "rec:1", "eph:1")
QUIET = 90.0  # seconds in which all maps must become equal
TOGETHER = 20  # puts under way at once
SHORT_TTL = 2
AWAY = 1.5
"""Seconds for which Redis is away."""


class Verdict(NamedTuple):
    """What was seen."""

    complaints: list[str]
    puts: int
    failed: int
    """Puts whose outcome is unknown, or that were refused by a node without Redis."""
    keys: dict[str, int]
    """Channel -> keys at the end."""
    counts: dict[str, int]
    """What clients did, all together."""
    seconds: float
    """From the last put until all maps were equal."""


class Scene:
    """A Redis, its nodes, and everything that happens to them."""

    def __init__(self, directory: Path, redis: RedisServer, nodes: int) -> None:
        self._directory, self.redis = directory, redis
        self.options = OPTIONS | {"redis_url": redis.url}
        self._made: list[Server] = []
        self.servers = [self._start() for _ in range(nodes)]
        self.clients: list[MapClient] = []
        self._tasks: dict[MapClient, asyncio.Task[None]] = {}
        self._values: dict[tuple[str, str], int] = {}
        self._busy: set[tuple[str, str]] = set()
        self.puts = self.failed = 0

    def _start(self) -> Server:
        server = Server(self._directory / f"node{len(self._made)}", self.options)
        self._made.append(server)
        return server

    def discard(self) -> None:
        for server in self._made:
            server.discard()
        self.redis.kill()

    # clients

    def join(self, channel: str, servers: Sequence[Server] = ()) -> MapClient:
        """Let a client come; it begins at any node, or at the first of `servers`."""
        servers = servers or random.sample(self.servers, len(self.servers))
        client = MapClient(f"c{len(self.clients)}", servers, channel)
        self.clients.append(client)
        self._tasks[client] = asyncio.create_task(client.run())
        return client

    async def leave(self, client: MapClient) -> None:
        self.clients.remove(client)
        task = self._tasks.pop(client)
        task.cancel()
        await asyncio.wait([task])

    async def live(self) -> None:
        def late() -> list[str]:
            return [f"{c.name} in {c.channel}: {c}" for c in self.clients if not c.is_live]

        with suppress(AssertionError):
            await until(lambda: not late(), "")
        assert late() == [], "these do not become live"

    # changes

    async def change(self, http: httpx.AsyncClient, channel: str, key: str, **how: Any) -> bool:
        """Put the next value of a key, or remove it. Return whether a node said that it did."""
        name = (channel, key)
        if name in self._busy:
            return False
        self._busy.add(name)
        try:
            method = "map_remove"
            params: dict[str, Any] = {"channel": channel, "key": key}
            if not how.pop("removed", False):
                self._values[name] = self._values.get(name, 0) + 1
                method = "map_publish"
                params |= {"data": self._values[name]} | how
            url = f"{random.choice(self.servers).address}/api/{method}"
            answer = await http.post(url, json=params, headers={"X-API-Key": API_KEY})
            self.puts += 1
            return "result" in answer.json()
        except httpx.HTTPError:
            return False
        finally:
            self._busy.discard(name)

    async def fill(self, keys: int) -> None:
        """Put keys into the persistent map."""
        async with _http() as http:
            for first in range(0, keys, TOGETHER):
                some = range(first, min(first + TOGETHER, keys))
                await asyncio.gather(*(self.change(http, "kept:1", f"k{n:05}") for n in some))

    async def write(self, rate: float, keys: int) -> None:
        """Change random keys until this is cancelled."""
        async with _http() as http, asyncio.TaskGroup() as group:
            slots = asyncio.Semaphore(5 * TOGETHER)

            async def one(channel: str, key: str, **how: Any) -> None:
                async with slots:
                    self.failed += not await self.change(http, channel, key, **how)

            while True:
                channel = random.choice(CHANNELS)
                number = random.randrange(keys if channel == "kept:1" else max(10, keys // 20))
                how: dict[str, Any] = {}
                if random.random() < 0.15:
                    how = {"removed": True}
                elif channel != "kept:1" and random.random() < 0.3:
                    how = {"ttl": random.randint(1, 5)}
                group.create_task(one(channel, f"k{number:05}", **how))
                await asyncio.sleep(random.expovariate(rate))

    # faults

    async def cut(self) -> None:
        """Cut some connections, again and again."""
        while True:
            await asyncio.sleep(0.5)
            for client in random.sample(self.clients, max(1, len(self.clients) // 15)):
                await client.cut()

    async def come_and_go(self, channels: tuple[str, ...]) -> None:
        """Let clients leave, and others come in their place."""
        while True:
            await asyncio.sleep(0.3)
            leaving = random.choice(self.clients)
            self.join(random.choice(channels))
            await self.leave(leaving)

    async def kill_node(self, victim: Server | None = None) -> None:
        """Kill a node, and start another one in its place."""
        victim = victim or random.choice(self.servers)
        await asyncio.to_thread(victim.kill)
        started = await asyncio.to_thread(self._start)
        self.servers[self.servers.index(victim)] = started
        for client in self.clients:
            client.go_on_at(started)

    async def restart_redis(self) -> None:
        await asyncio.to_thread(self.redis.kill)
        await asyncio.sleep(AWAY)
        await asyncio.to_thread(self.redis.start)

    # the end

    async def state(self, channel: str) -> dict[str, Any]:
        """Read the map of the server."""
        entries: dict[str, Any] = {}
        async with _http() as http:
            cursor = ""
            while True:
                answer = await http.post(
                    f"{self.servers[0].address}/api/map_read_state",
                    json={"channel": channel, "cursor": cursor, "limit": 1000},
                    headers={"X-API-Key": API_KEY},
                )
                result = answer.json()["result"]
                entries |= {entry["key"]: entry["data"] for entry in result["entries"]}
                if not (cursor := result.get("cursor", "")):
                    return entries

    async def settle(self) -> float:
        """Wait until each client has the map of the server. Return the seconds that it took.

        Raises:
            AssertionError: a map stays different.
        """
        began = time.monotonic()
        while True:
            for task in self._tasks.values():
                if task.done():
                    task.result()  # raises what the client did not expect
            states = {channel: await self.state(channel) for channel in CHANNELS}
            different = [
                client
                for client in self.clients
                if not client.is_live or client.entries != states[client.channel]
            ]
            if not different:
                return time.monotonic() - began
            if time.monotonic() - began > QUIET:
                raise AssertionError(
                    "\n".join(_difference(c, states[c.channel]) for c in different)
                )
            await asyncio.sleep(0.5)


def _difference(client: MapClient, state: Mapping[str, Any]) -> str:
    keys = [key for key in {*state, *client.entries} if state.get(key) != client.entries.get(key)]
    some = {key: (client.entries.get(key), state.get(key)) for key in sorted(keys)[:5]}
    return (
        f"{client.name} in {client.channel}, live {client.is_live}: {len(keys)} keys differ from"
        f" the server's, such as {some}; {client}"
    )


def _http() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=15, trust_env=False)


async def until(condition: Any, what: str, timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {timeout:g} s"
        await asyncio.sleep(0.05)


@asynccontextmanager
async def staged(directory: Path, nodes: int, *, persistent: bool = True) -> AsyncIterator[Scene]:
    """A scene for the length of a block. `persistent`: Redis has each write on disk."""
    redis = await asyncio.to_thread(RedisServer(directory, persistent=persistent).start)
    scene = await asyncio.to_thread(Scene, directory, redis, nodes)
    try:
        yield scene
    finally:
        for client in list(scene.clients):
            await scene.leave(client)
        await asyncio.to_thread(scene.discard)


async def play(
    scene: Scene, *, keys: int, puts: float, joiners: int, seconds: float, restarts: bool = True
) -> Verdict:
    """Play the scene. Raises AssertionError where a map stays different."""
    await scene.fill(keys)
    for number in range(joiners):
        scene.join(CHANNELS[number % len(CHANNELS)])
    await scene.live()
    seen: list[MapClient] = list(scene.clients)
    work = [
        asyncio.create_task(each)
        for each in (scene.write(puts, keys), scene.cut(), scene.come_and_go(CHANNELS))
    ]
    faults = [scene.kill_node, scene.restart_redis, scene.kill_node]
    for fault in faults if restarts else faults[:1]:
        await asyncio.sleep(seconds / (len(faults) + 1))
        await fault()
        seen += [client for client in scene.clients if client not in seen]
    await asyncio.sleep(seconds / (len(faults) + 1))
    for task in work:
        task.cancel()
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
    took = await scene.settle()
    seen += [client for client in scene.clients if client not in seen]
    counts = {name: sum(client.counts[name] for client in seen) for name in seen[0].counts}
    sizes = {channel: len(await scene.state(channel)) for channel in CHANNELS}
    complaints = [f"{c.name} in {c.channel}: {each}" for c in seen for each in c.complaints]
    return Verdict(complaints, scene.puts, scene.failed, sizes, counts, took)


async def expire(scene: Scene, keys: int) -> float:
    """Put keys and kill a node. Return how late the last removal came to others, in seconds."""
    victim, *others = scene.servers
    watchers = [scene.join(channel, others) for channel in ("rec:1", "eph:1")]
    await scene.live()
    async with _http() as http:
        names = [f"short{number}" for number in range(keys)]
        for watcher in watchers:
            assert all(
                await asyncio.gather(
                    *(scene.change(http, watcher.channel, key, ttl=SHORT_TTL) for key in names)
                )
            )
    due = asyncio.get_running_loop().time() + SHORT_TTL
    await scene.kill_node(victim)
    for watcher in watchers:
        await until(
            lambda watcher=watcher: watcher.removed_at.keys() >= {*names}, "all are removed"
        )
    return max(watcher.removed_at[key] - due for watcher in watchers for key in names)


FIRST_COME = """
print("ready", flush=True)
sys.stdin.readline()
change = realtime.map("kept:1").put("first", os.getpid(), if_new=True)
print("kept" if change.kept else change.reason)
"""
"""A program: it says that it is ready, and puts when it is told to."""
INCREMENT = """
counter, done, entry = realtime.map("kept:1"), 0, None
while done < {number}:
    entry = entry or counter.get("counter")
    how = dict(if_new=True) if entry is None else dict(expect=entry.position)
    change = counter.put("counter", 1 if entry is None else entry.data + 1, **how)
    done += change.kept
    entry = change.current
print(done)
"""
"""A program: it increments a number, again and again where another process was quicker."""


def run_all(scene: Scene, code: str, number: int) -> list[str]:
    """Run a program in many processes, which begin together. Return what each wrote."""
    variables = environment(scene._directory, scene.options)
    with ExitStack() as undo:
        processes = []
        for _ in range(number):
            process = subprocess.Popen(
                [sys.executable, "-c", SET_UP + code],
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            undo.callback(process.kill)
            processes.append(process)
        if code == FIRST_COME:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
        return [process.communicate("\n")[0].strip() for process in processes]


async def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        async with staged(Path(name), nodes=3) as scene:
            size = {name: vars(arguments)[name] for name in ("keys", "puts", "joiners", "seconds")}
            verdict = await play(scene, **size)
            for field, value in verdict._asdict().items():
                print(f"{field}: {value}")  # noqa: T201
            print(f"expiry, at most late: {await expire(scene, 100):.2f} s")  # noqa: T201
            first = await asyncio.to_thread(run_all, scene, FIRST_COME, arguments.processes)
            print(f"if_new: {first.count('kept')} of {len(first)} kept")  # noqa: T201
            each = arguments.increments // 4
            began = time.monotonic()
            await asyncio.to_thread(run_all, scene, INCREMENT.format(number=each), 4)
            counter = (await scene.state("kept:1"))["counter"]
            took = time.monotonic() - began
            print(f"increments: {counter} of {4 * each}, {took:.0f} s")  # noqa: T201
            assert (verdict.complaints, first.count("kept"), counter) == ([], 1, 4 * each)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--puts", type=float, default=200)
    parser.add_argument("--joiners", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--increments", type=int, default=10_000)
    asyncio.run(main(parser.parse_args()))
