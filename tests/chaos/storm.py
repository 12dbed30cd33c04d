"""A reconnect storm: thousands of clients come back at once, with tokens and channels to recover.

    python -m tests.chaos.storm [--clients 10000] [--server daphne|uvicorn] [--channels 3]

One process serves, with the memory engine. Meanwhile publications go to clients that are connected
all the time. Reported are the seconds until all are in, handshakes that failed, and how late the
publications came.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.chaos.command import Poster, serving
from tests.chaos.raw_socket import TEXT, RawSocket, frame
from tests.conftest import connection_token
from tests.server import API_KEY, Server

OPTIONS = {
    "namespaces": [
        {"name": "room", "history_size": 20, "history_lifetime": 600, "force_recovery": True},
        {"name": "live"},
    ],
    "v3_use_offset": True,
}
WATCHERS = 50
INTERVAL = 0.02
"""Seconds between two publications to those that are connected."""
MISSED = 3
"""Publications that each client recovers in each channel."""


def commands(*wanted: tuple[str, dict[str, Any]]) -> bytes:
    """Return a frame with commands of the second generation."""
    lines = [json.dumps({"id": n, name: params}) for n, (name, params) in enumerate(wanted, 1)]
    return frame("\n".join(lines).encode())


class Client(RawSocket):
    """One client: it greets, counts replies, and hands on what it gets."""

    def __init__(self, greeting: bytes, replies: int) -> None:
        super().__init__(greeting)
        self._replies = replies
        self.ready: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.recovered = 0
        self.late: list[float] = []

    def frame_received(self, opcode: int, data: bytes) -> None:
        for line in data.splitlines() if opcode == TEXT else ():
            message = json.loads(line)
            if "id" in message:
                if "error" in message:
                    self.refused(str(message["error"]))
                    return
                self.recovered += len(message.get("subscribe", {}).get("publications", ()))
                self._replies -= 1
                if not self._replies and not self.ready.done():
                    self.ready.set_result(time.monotonic())
            elif pub := message.get("push", {}).get("pub"):
                self.receive(pub["data"])
            elif not message:  # a ping: without an answer the server closes the connection
                self.transport.write(frame(b"{}"))

    def receive(self, data: Any) -> None:
        """Take the data of a publication."""
        self.late.append(time.time() - data["at"])

    def refused(self, status: str) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(status))

    def connection_lost(self, error: Exception | None) -> None:
        self.refused(f"lost: {error}")


async def open_client(port: int, greeting: bytes, replies: int) -> Client:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Client(greeting, replies), "127.0.0.1", port)
    return client


async def watch(port: int) -> None:
    """Publish and watch until the input ends; print how late publications came, in seconds."""
    greeting = commands(
        ("connect", {"token": connection_token("watcher")}), ("subscribe", {"channel": "live:a"})
    )
    watchers = [await open_client(port, greeting, 2) for _ in range(WATCHERS)]
    await asyncio.gather(*(client.ready for client in watchers))
    publisher = asyncio.create_task(_publish(port))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in range(2):  # a line when the storm begins, and one when it is over
        await asyncio.to_thread(sys.stdin.readline)
        late = sorted(each for client in watchers for each in client.late)
        for client in watchers:
            client.late.clear()
    publisher.cancel()
    sys.stdout.write(json.dumps(late) + "\n")


async def storm(server: Server, number: int, channels: int) -> None:
    """Measure one storm, and print what was seen."""
    rooms = [f"room:{n}" for n in range(50)]
    epochs: dict[str, str] = {}
    for room in rooms:
        for _ in range(MISSED + 1):
            await asyncio.to_thread(server.api, "publish", channel=room, data={"at": 0})
        epochs[room] = await asyncio.to_thread(_epoch, server, room)
    greetings = []
    for n in range(number):
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("connect", {"token": connection_token(f"user{n}")})
        ]
        for room in (rooms[(n + k) % len(rooms)] for k in range(channels)):
            since = {"recover": True, "offset": 1, "epoch": epochs[room]}
            wanted.append(("subscribe", {"channel": room, **since}))
        greetings.append(commands(*wanted))
    watcher = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.storm", "--watch", str(server.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdin is not None
    assert watcher.stdout is not None
    await asyncio.to_thread(watcher.stdout.readline)
    await asyncio.sleep(1)
    watcher.stdin.write("begin\n")
    watcher.stdin.flush()
    cpu, begun = server_cpu(server), time.monotonic()
    opened = await asyncio.gather(
        *(open_client(server.port, greeting, channels + 1) for greeting in greetings),
        return_exceptions=True,
    )
    clients = [client for client in opened if isinstance(client, Client)]
    ends = await asyncio.gather(*(client.ready for client in clients), return_exceptions=True)
    done = [end for end in ends if isinstance(end, float)]
    failed = [str(end) for end in (*opened, *ends) if isinstance(end, BaseException)]
    seconds = max(done, default=begun) - begun
    used = server_cpu(server) - cpu
    late = json.loads((await asyncio.to_thread(watcher.communicate, "end\n"))[0])
    report = {
        "clients": number,
        "in": len(done),
        "seconds": round(seconds, 2),
        "failed": len(failed),
        "why": sorted(set(failed))[:3],
        "recovered": sum(client.recovered for client in clients),
        "cpu_us_per_client": round(used / max(1, len(done)) * 1e6),
        **{
            f"late_p{part}_ms": round(late[(len(late) - 1) * part // 100] * 1000, 1)
            for part in (50, 99, 100)
            if late
        },
    }
    sys.stdout.write(json.dumps(report) + "\n")


def _epoch(server: Server, channel: str) -> str:
    request = urllib.request.Request(
        f"{server.address}/api/history",
        json.dumps({"channel": channel}).encode(),
        {"X-API-Key": API_KEY, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        epoch: str = json.loads(response.read())["result"]["epoch"]
        return epoch


def server_cpu(server: Server) -> float:
    """Return the seconds of CPU that the server has used."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _publish(port: int) -> None:
    poster = await Poster.open(port)
    while True:
        await poster.publish("live:a", {"at": time.time()})
        await asyncio.sleep(INTERVAL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument("--server", default="uvicorn")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=JSON")
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.watch:
        asyncio.run(watch(arguments.watch))
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    given = (option.partition("=") for option in arguments.option)
    more = {name: json.loads(value) for name, _, value in given}
    with serving({**OPTIONS, **more}, arguments.server) as [server]:
        asyncio.run(storm(server, arguments.clients, arguments.channels))


if __name__ == "__main__":
    main()
