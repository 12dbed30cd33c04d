"""Cells: a server, how it is started, and what its clients say. Names are those of the report."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import processes
from benchmarks.load import Script
from benchmarks.processes import HERE, Command, Process

OURS_DAPHNE = "ours, daphne"
OURS_UVICORN = "ours, uvicorn"
MEMORY_DAPHNE = "Channels in-memory, daphne"
MEMORY_UVICORN = "Channels in-memory, uvicorn"
REDIS_DAPHNE = "Channels pubsub, daphne"
REDIS_UVICORN = "Channels pubsub, uvicorn"
PYTHON_SOCKETIO = "python-socketio, uvicorn"
NODE_WS = "ws, node"
NODE_SOCKETIO = "socket.io, node"
CFAN = "cfan, C"
STOCK_DAPHNE = "stock consumer, daphne"
STOCK_UVICORN = "stock consumer, uvicorn"
VIEW_DAPHNE = "DRF view, daphne"
VIEW_UVICORN = "DRF view, uvicorn"
FRONT_DAPHNE = "/api in front of Django, daphne"
FRONT_UVICORN = "/api in front of Django, uvicorn"
ONE_MEMORY = "ours, 1 process, memory"
ONE_REDIS = "ours, 1 process, Redis"
TWO_REDIS = "ours, 2 processes, Redis"
TWO_PUBSUB = "Channels pubsub, 2 processes"
FIRST = "first generation"
SECOND = "second generation"
HALF = "half and half"
DELTAS = "second generation with deltas"

OURS = (OURS_DAPHNE, OURS_UVICORN)
PLAIN = (MEMORY_DAPHNE, REDIS_DAPHNE, MEMORY_UVICORN, REDIS_UVICORN)

NEVER = "86400"
"""Seconds between pings: servers stand still while others are measured."""

DATA = '{"ts":%T,"n":%n,"pad":"' + "a" * 56 + '"}'
"""About 100 bytes with 15 digits of time."""

CONNECT = '{"id":1,"params":{}}'
SUBSCRIBE = '{"id":2,"method":1,"params":{"channel":"g"}}'
CONNECT_2 = '{"id":1,"connect":{}}'
SUBSCRIBE_2 = '{"id":2,"subscribe":{"channel":"g"}}'
SUBSCRIBE_DELTAS = '{"id":2,"subscribe":{"channel":"g","delta":"fossil"}}'
PING = '{"id":%n,"method":7}'
ECHO = '{"id":%n,"method":0}'
API_PUBLISH = '{"method":"publish","params":{"channel":"g","data":' + DATA + "}}"
API_KEY = "benchmark-key"


def publish_command(channel: str) -> str:
    """A client's command; `%r` in the channel is the publication's number modulo something."""
    return '{"id":%n,"method":3,"params":{"channel":"' + channel + '","data":' + DATA + "}}"


def subscribe_command(channel: str) -> str:
    """A client's command; `%r` in the channel is the connection's number modulo something."""
    return '{"id":%n,"method":1,"params":{"channel":"' + channel + '"}}'


OUR_SCRIPT = Script(
    path="/connection/websocket",
    greet=(CONNECT, SUBSCRIBE),
    ready=2,
    publisher_path="/connection/websocket",
    publisher_greet=(CONNECT,),
    publisher_ready=1,
    publication=publish_command("g"),
)
SECOND_SCRIPT = replace(OUR_SCRIPT, greet=(CONNECT_2, SUBSCRIBE_2))
DELTAS_SCRIPT = replace(OUR_SCRIPT, greet=(CONNECT_2, SUBSCRIBE_DELTAS))
HALF_SCRIPT = replace(OUR_SCRIPT, other_greet=SECOND_SCRIPT.greet)
PLAIN_SCRIPT = Script(path="/sub", publisher_path="/pub", publication=DATA)
STOCK_SCRIPT = Script(path="/echo")
_SOCKETIO_PATH = "/socket.io/?EIO=4&transport=websocket"
SOCKETIO_SCRIPT = Script(
    path=_SOCKETIO_PATH,
    greet=("40",),
    ready=2,
    publisher_path=_SOCKETIO_PATH + "&role=pub",
    publisher_greet=("40",),
    publisher_ready=2,
    publication='42["pub",' + DATA + "]",
)
API_SCRIPT = Script(http="/api", headers=(f"Authorization: apikey {API_KEY}",))


@dataclass(frozen=True)
class Cell:
    """One service to measure: one server, or several of the same."""

    name: str
    command: Command
    script: Script
    processes: int = 1

    @property
    def servers(self) -> list[str]:
        """A name for each server."""
        return [f"{self.name} #{number}" for number in range(1, self.processes + 1)]


@dataclass(frozen=True)
class Setup:
    """What cells are made of on this machine."""

    tree: Path
    """The repository whose `realtime` is measured."""
    redis: Process | None
    node: str | None
    launcher: bool = True
    """Start the service under daphne with its own `python -m realtime`."""

    @property
    def redis_url(self) -> str:
        """Empty when there is no Redis."""
        return f"redis://127.0.0.1:{self.redis.port}" if self.redis else ""

    def python(
        self, server: str, module: str, extra: Mapping[str, str], ping: str = NEVER
    ) -> Command:
        """A Python ASGI server with the application of `servers/<module>.py`."""
        application = f"{module}:application"
        daphne_options = ["-v", "0", "--ping-interval", ping, "--websocket_timeout", "-1"]
        if server == "daphne-launcher":
            words = ["realtime", "--port", "{port}", *daphne_options]
        elif server == "daphne":
            endpoint = "tcp:port={port}:interface=127.0.0.1:backlog=4096"
            words = ["daphne", "-e", endpoint, *daphne_options]
        else:
            words = (
                "uvicorn --port {port} --ws websockets-sansio --loop uvloop --http httptools"
                " --ws-per-message-deflate false --no-access-log --log-level warning"
                f" --backlog 4096 --ws-ping-interval {ping}"
            ).split()
        return self._python(["-m", *words, application], extra)

    def _python(self, words: Sequence[str], extra: Mapping[str, str]) -> Command:
        search = os.pathsep.join([str(self.tree), str(HERE / "servers")])
        return Command([sys.executable, *words], {"PYTHONPATH": search, **extra}, self.tree)

    def ours(
        self,
        server: str,
        api: str = "shell",
        ping: str = NEVER,
        redis_prefix: str = "",
        *,
        deltas: bool = False,
    ) -> Command:
        """The service. `client_insecure` lets the loader connect without a token.

        `redis_prefix`: with the Redis engine, and names that begin with this. `deltas`: clients may
        ask for them.
        """
        if server == "daphne" and self.launcher:
            server = "daphne-launcher"
        extra = {"SERVICE_CLIENT_INSECURE": "1", "SERVICE_API_KEY": API_KEY, "BENCH_API": api}
        # what rates cost is measured, and no command is refused
        extra["SERVICE_CLIENT_COMMAND_RATES"] = "* 1000000/s burst 1000000"
        if redis_prefix:
            extra |= {"SERVICE_REDIS_URL": self.redis_url, "SERVICE_REDIS_PREFIX": redis_prefix}
        if deltas:
            extra["SERVICE_ALLOWED_DELTA_TYPES"] = "fossil"
        return self.python(server, "bench_service", extra, ping)

    def channels(self, server: str, layer: str) -> Command:
        """Plain Channels consumers."""
        extra = {
            "BENCH_LAYER": layer,
            "BENCH_REDIS": self.redis_url,
            "BENCH_PREFIX": f"bench-{server}",
        }
        return self.python(server, "bench_channels", extra)

    def fan_out(self) -> list[Cell]:
        """Everything that fans out, as far as it is there."""
        cells = [
            Cell(OURS_DAPHNE, self.ours("daphne"), OUR_SCRIPT),
            Cell(MEMORY_DAPHNE, self.channels("daphne", "memory"), PLAIN_SCRIPT),
            Cell(OURS_UVICORN, self.ours("uvicorn"), OUR_SCRIPT),
            Cell(MEMORY_UVICORN, self.channels("uvicorn", "memory"), PLAIN_SCRIPT),
            Cell(CFAN, Command([str(processes.compiled("cfan")), "{port}"]), PLAIN_SCRIPT),
        ]
        if self.redis is not None:
            cells[2:2] = [Cell(REDIS_DAPHNE, self.channels("daphne", "redis"), PLAIN_SCRIPT)]
            cells[5:5] = [Cell(REDIS_UVICORN, self.channels("uvicorn", "redis"), PLAIN_SCRIPT)]
        if has_socketio():
            command = self.python("uvicorn", "bench_socketio", {})
            cells.append(Cell(PYTHON_SOCKETIO, command, SOCKETIO_SCRIPT))
        if self.node is not None:
            peers = HERE / "peers"
            for name, file, script in (
                (NODE_SOCKETIO, "socketio.js", SOCKETIO_SCRIPT),
                (NODE_WS, "ws.js", PLAIN_SCRIPT),
            ):
                cells.append(Cell(name, Command([self.node, file, "{port}"], {}, peers), script))
        return cells

    def commands(self) -> list[Cell]:
        """The service, and the stock consumer without a channel layer."""
        return [
            Cell(OURS_DAPHNE, self.ours("daphne"), OUR_SCRIPT),
            Cell(STOCK_DAPHNE, self.channels("daphne", "none"), STOCK_SCRIPT),
            Cell(OURS_UVICORN, self.ours("uvicorn"), OUR_SCRIPT),
            Cell(STOCK_UVICORN, self.channels("uvicorn", "none"), STOCK_SCRIPT),
        ]

    def api(self) -> list[Cell]:
        """The server API, in front of Django and inside REST framework."""
        return [
            Cell(FRONT_DAPHNE, self.ours("daphne", "shell"), API_SCRIPT),
            Cell(VIEW_DAPHNE, self.ours("daphne", "view"), API_SCRIPT),
            Cell(FRONT_UVICORN, self.ours("uvicorn", "shell"), API_SCRIPT),
            Cell(VIEW_UVICORN, self.ours("uvicorn", "view"), API_SCRIPT),
        ]

    def many(self, ping: int) -> list[Cell]:
        """The service, with a ping every that many seconds."""
        return [
            Cell(OURS_DAPHNE, self.ours("daphne", ping=str(ping)), OUR_SCRIPT),
            Cell(OURS_UVICORN, self.ours("uvicorn", ping=str(ping)), OUR_SCRIPT),
        ]

    def generations(self, server: str) -> list[Cell]:
        """The service, with clients of each generation and of both."""
        scripts = {
            FIRST: OUR_SCRIPT,
            SECOND: SECOND_SCRIPT,
            HALF: HALF_SCRIPT,
            DELTAS: DELTAS_SCRIPT,
        }
        return [
            Cell(f"{name}, {server}", self.ours(server, deltas=name == DELTAS), script)
            for name, script in scripts.items()
        ]

    def cluster(self) -> list[Cell]:
        """One process and two behind one Redis, all of them daphne."""
        one, two = (self.ours("daphne", redis_prefix=f"bench-{number}") for number in (1, 2))
        return [
            Cell(ONE_MEMORY, self.ours("daphne"), OUR_SCRIPT),
            Cell(ONE_REDIS, one, OUR_SCRIPT),
            Cell(TWO_REDIS, two, OUR_SCRIPT, processes=2),
            Cell(TWO_PUBSUB, self.channels("daphne", "redis"), PLAIN_SCRIPT, processes=2),
        ]

    def publisher(self, way: str) -> Command:
        """A process that publishes; `way` is one of `servers/bench_publish.py`."""
        return self._python(
            [str(HERE / "servers" / "bench_publish.py"), way],
            {"SERVICE_REDIS_URL": self.redis_url, "SERVICE_REDIS_PREFIX": "bench-publish"},
        )


def has_socketio() -> bool:
    """Whether python-socketio can be imported."""
    return importlib.util.find_spec("socketio") is not None
