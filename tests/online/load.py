"""Many users at nodes in processes of their own: `python -m tests.online.load [users] [killed]`.

The nodes are real, as are Redis and the kill; clients are added to the hub, without sockets. It
says how many joins, leaves and signals there were for each user, how long it took until the ends
of a killed node were told, and what `among` costs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine.base import Joined
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.node.hooks import Events
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo
from tests.redis_server import RedisServer
from tests.unit.parts import RecordingClient

PREFIX = "load"
ROOM = "room"
DELAY = 3.0
OPTIONS = ChannelOptions(presence=True, join_leave="user", leave_delay=DELAY)
ONLINE = 100_000
"""Users of whom `among` looks for some."""
ASKED = 500


def write(line: str) -> None:
    """Write a line to the standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Log(Events):
    """What a node was told, as lines of a file."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115

    def write(self, kind: str, name: str, certain: object = None) -> None:
        line = {"kind": kind, "name": name, "certain": certain, "at": time.time()}
        self._file.write(json.dumps(line | {"pid": os.getpid()}) + "\n")

    def emit(self, kind: str, **details: Any) -> None:
        if kind.startswith("user_"):
            self.write(kind, details["user"], details.get("certain"))

    async def drained(self, timeout: float) -> bool:
        return True

    async def close(self) -> None:
        pass


async def serve(url: str, path: str, watches: str) -> None:
    """Be a node that does what lines of the standard input say. `watches`: "1" or "0"."""
    log = Log(path)
    layer = RedisChannelLayer(hosts=[url], prefix=PREFIX)
    engine = RedisEngine(layer.bus, PREFIX)
    node = Node(load({}), engine, events=log, lists_users=True)
    await node.start()
    if watches == "1":
        node.on_notice = lambda channel, notice: log.write(
            "join" if isinstance(notice, Joined) else "leave", notice.info.user
        )
        await node.broker.subscribe(ROOM)
    clients: dict[str, RecordingClient] = {}
    write("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        command, first, last, tabs = line.split()
        for number in range(int(first), int(last)):
            for tab in range(int(tabs)):
                name, user = f"{number}-{tab}", str(number)
                info = ClientInfo(user, f"{node.uid}-{name}")
                if command in ("connect", "list"):
                    clients[name] = RecordingClient(info.client, user)
                    node.hub.add(clients[name])
                    if command == "connect":
                        await node.subscriptions.join(ROOM, info, OPTIONS)
                else:
                    client = clients.pop(name)
                    node.hub.remove(client)
                    await node.subscriptions.remove(ROOM, client, OPTIONS, leave=info)
            if number % 100 == 0:
                await asyncio.sleep(0)
        await engine.lists.idle()
        write("done")
    await node.stop()


class Process:
    """A node, and what it was told."""

    def __init__(self, server: RedisServer, directory: Path, name: str, watches: int = 0) -> None:
        self.path = directory / name
        arguments = (server.url, str(self.path), str(watches))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.online.load", "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.wait()

    def wait(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), "the node ended"

    def begin(self, command: str, first: int, last: int, tabs: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command} {first} {last} {tabs}\n")
        self.process.stdin.flush()

    def do(self, command: str, first: int, last: int, tabs: int) -> None:
        self.begin(command, first, last, tabs)
        self.wait()

    def lines(self) -> list[dict[str, Any]]:
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def counts(processes: list[Process], kind: str) -> Counter[str]:
    """How often each user was told of."""
    lines = [line for process in processes for line in process.lines()]
    return Counter(line["name"] for line in lines if line["kind"] == kind)


def until(condition: Callable[[], bool], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)


def say(what: str, found: Counter[str], wanted: int) -> None:
    verdict = "ok" if len(found) == wanted and set(found.values()) <= {1} else "WRONG"
    write(f"{what}: {len(found)} users, {sum(found.values())} in all, wanted {wanted}: {verdict}")


def both(processes: list[Process], command: str, users: int) -> float:
    """Have two tabs of each user at one node, and one at the other; returns seconds."""
    began = time.monotonic()
    for process, tabs in zip(processes, (2, 1), strict=True):
        process.begin(command, 0, users, tabs)
    for process in processes:
        process.wait()
    return time.monotonic() - began


def tabs(server: RedisServer, directory: Path, users: int) -> None:
    """Three tabs for each user at two nodes: come, reload, go."""
    nodes = [Process(server, directory, "a", 1), Process(server, directory, "b")]
    write(f"{users} users with 3 tabs connect in {both(nodes, 'connect', users):.1f} s")
    until(lambda: len(counts(nodes, "join")) == users, 30)
    say("joins", counts(nodes, "join"), users)
    say("user_online", counts(nodes, "user_online"), users)
    for first in range(0, users, 500):  # so many reload at once that the delay is enough
        for command in ("disconnect", "connect"):
            for node, number in zip(nodes, (2, 1), strict=True):
                node.do(command, first, min(first + 500, users), number)
    time.sleep(2 * DELAY)
    say("joins after all have reloaded", counts(nodes, "join"), users)
    say("leaves after all have reloaded", counts(nodes, "leave"), 0)
    both(nodes, "disconnect", users)
    until(lambda: len(counts(nodes, "leave")) == users, 60)
    say("leaves", counts(nodes, "leave"), users)
    for node in nodes:
        node.process.communicate()


def killed(server: RedisServer, directory: Path, users: int) -> None:
    """A node is killed; a fifth of its users have a tab elsewhere."""
    nodes = [Process(server, directory, "c"), Process(server, directory, "d", 1)]
    nodes.append(Process(server, directory, "e"))
    nodes[0].do("connect", 0, users, 1)
    nodes[1].do("connect", 0, users // 5, 1)
    survivors, alone = nodes[1:], users - users // 5
    at = time.time()
    nodes[0].kill()
    until(lambda: len(counts(survivors, "leave")) >= alone, 30)
    time.sleep(5)  # for what is told twice
    lines = [line for each in survivors for line in each.lines()]
    ends = [line for line in lines if line["kind"] == "user_offline"]
    say("user_offline", counts(survivors, "user_offline"), alone)
    say("leaves", counts(survivors, "leave"), alone)
    last = max(line["at"] for line in lines if line["kind"] in ("user_offline", "leave")) - at
    processes, certain = {line["pid"] for line in ends}, {line["certain"] for line in ends}
    write(f"last end {last:.1f} s after the kill, {len(processes)} process(es), certain {certain}")
    for node in survivors:
        node.process.communicate()


def among(server: RedisServer, directory: Path) -> None:
    """What `among` costs, with two nodes."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ["TEST_DATABASE"] = str(directory / "database")
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from realtime.config import sources
    from realtime.online import among, users

    sources.configuration.override(redis_url=server.url, redis_prefix=PREFIX)
    call_command("migrate", verbosity=0)
    User.objects.bulk_create(User(pk=n, username=f"u{n}") for n in range(ONLINE, ONLINE + ASKED))
    nodes = [Process(server, directory, "f"), Process(server, directory, "g")]
    nodes[0].do("list", 0, ONLINE, 1)
    nodes[1].do("list", ONLINE - 1000, ONLINE + ASKED // 2, 1)
    for name, work in (("QuerySet", lambda: among(User.objects.all())), ("list", _listed(among))):
        times = []
        for _ in range(50):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        median, worst = statistics.median(times) * 1000, max(times) * 1000
        write(f"among({ASKED}) of {ONLINE}, {name}: median {median:.2f} ms, worst {worst:.2f} ms")
    began = time.perf_counter()
    found = users().count()
    write(f"users().count() of {ONLINE}: {(time.perf_counter() - began) * 1000:.0f} ms, {found}")
    for node in nodes:
        node.process.communicate()


def _listed(among: Callable[[Any], Any]) -> Callable[[], Any]:
    from django.contrib.auth.models import User

    return lambda: list(among(User.objects.all()))


def main(users: int = 10_000, at_killed: int = 5000) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "redis").mkdir()
        server = RedisServer(directory / "redis").start()
        try:
            tabs(server, directory, users)
            killed(server, directory, at_killed)
            among(server, directory)
        finally:
            server.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(*sys.argv[2:]))
    else:
        main(*map(int, sys.argv[1:]))
