"""What the tests of several server processes share: their options, and questions to a server."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.live.configurations import NAMESPACES, Options
from tests.redis_server import RedisServer
from tests.server import Server

Cluster = Callable[..., list[Server]]
OwnRedis = Callable[..., RedisServer]

SERVICE: Options = {
    "namespaces": NAMESPACES,
    "v3_use_offset": True,
    "redis_prefix": "service-of-many-nodes",
}
"""One service: whatever is started with these options belongs to it."""

BRIEF: Options = {
    "namespaces": NAMESPACES,
    "v3_use_offset": True,
    "client_presence_ping_interval": 1,
    "client_presence_expire_interval": 2,
}
"""Presence is renewed every second and forgotten after two."""

TwoNodes = tuple[Server, Server]
"""Two nodes of one service."""

KINDS = {
    "daphne to daphne": ("daphne", "daphne"),
    "daphne to uvicorn": ("daphne", "uvicorn"),
    "uvicorn to daphne": ("uvicorn", "daphne"),
}

TWO_NODES = pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
"""For tests that are not the same whatever the servers are."""


def presence(server: Server, channel: str) -> dict[str, Any]:
    """Client ID → client info, as a server answers."""
    entries: dict[str, Any] = server.api("presence", channel=channel)["result"]["presence"]
    return entries


def presence_stats(server: Server, channel: str) -> tuple[int, int]:
    """Clients and users, as a server answers."""
    result = server.api("presence_stats", channel=channel)["result"]
    return result["num_clients"], result["num_users"]


def channels(server: Server, word: str) -> list[str]:
    """The channels with a word in their name that a server lists."""
    return [name for name in server.api("channels")["result"]["channels"] if word in name]


def nodes(server: Server) -> list[dict[str, Any]]:
    """The nodes a server lists."""
    entries: list[dict[str, Any]] = server.api("info")["result"]["nodes"]
    return entries


def name_of(server: Server) -> str:
    """The name of a node that has none in its options."""
    return f"{socket.gethostname()}_{server.pid}"


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Freeze a node for the length of a `with` block: nothing of it runs."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def groups(redis: RedisServer) -> dict[str, int]:
    """Layer group → how many nodes are in it."""
    with redis.client() as client:
        names = [name for name in client.pubsub_channels() if b"__group__" in name]
        counts = client.pubsub_numsub(*names) if names else []
    return {name.decode(): count for name, count in counts}
