"""What a publication costs: one command to Redis, whoever publishes and however many listen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import new_word
from tests.redis_server import RedisServer
from tests.server import Server

PREFIX = f"{new_word()}-trips"
OPTIONS: dict[str, Any] = {
    "redis_prefix": PREFIX,
    "client_insecure": True,
    "namespaces": [
        {"name": "plain"},
        {"name": "kept", "history_size": 100, "history_lifetime": 300},
        {
            "name": "recover",
            "history_size": 100,
            "history_lifetime": 300,
            "history_recover": True,
        },
        {"name": "joined", "presence": True, "join_leave": True},
    ],
}
HEARTBEAT = (
    f"{PREFIX}:nodes",
    f"{PREFIX}:channels:",
    f"{PREFIX}:users:",
    f"{PREFIX}:lists.",
    f"{PREFIX}:owner:",
    f"{PREFIX}:blocked.version",
    "control",
)
"""What nodes say of themselves, and look at, every few seconds, whatever is published."""


@contextmanager
def monitored(server: RedisServer, word: str) -> Iterator[Callable[[], list[str]]]:
    """Watch a Redis; the function gives the commands with a word that the service sent meanwhile.

    The word is in the channels of one test. Commands that scripts run are left out, and so is the
    heartbeat. To be asked once.
    """
    lines: list[dict[str, Any]] = []
    end = new_word()
    ended = threading.Event()
    with server.client() as watching, server.client() as asking:

        def read() -> None:
            for line in monitor.listen():
                if line["client_type"] != "lua":
                    lines.append(line)
                if end in line["command"]:
                    ended.set()
                    return

        def sent() -> list[str]:
            asking.echo(end)  # commands are told in the order in which they are run
            assert ended.wait(10)
            return [
                line["command"]
                for line in lines
                if word in line["command"]
                and not any(name in line["command"] for name in HEARTBEAT)
            ]

        with watching.monitor() as monitor:
            reader = threading.Thread(target=read)
            reader.start()
            try:
                yield sent
            finally:
                asking.echo(end)
                reader.join(10)


@pytest.fixture
async def subscribers(
    shared_cluster: Callable[..., list[Server]], connect: Callable[..., Any]
) -> Callable[..., Any]:
    """Subscribe clients of the first server to a channel: `await subscribers(50, channel)`."""
    server = shared_cluster(**OPTIONS)[0]

    async def one(channel: str) -> Any:
        client = await connect(server, user=None)
        await client.result("subscribe", {"channel": channel})
        return client

    async def start(number: int, channel: str) -> list[Any]:
        clients: list[Any] = []
        while len(clients) < number:
            part = min(25, number - len(clients))
            clients.extend(await asyncio.gather(*(one(channel) for _ in range(part))))
        return clients

    return start


@pytest.mark.parametrize("publisher", [0, 1], ids=["their server", "the other server"])
@pytest.mark.parametrize(
    ("namespace", "command"), [("plain", "PUBLISH"), ("kept", "EVALSHA"), ("recover", "EVALSHA")]
)
async def test_publication_is_one_command(
    shared_cluster: Callable[..., list[Server]],
    redis_server: RedisServer,
    subscribers: Callable[..., Any],
    unique: str,
    namespace: str,
    command: str,
    publisher: int,
) -> None:
    channel = f"{namespace}:{unique}"
    server = shared_cluster(**OPTIONS)[publisher]
    clients = await subscribers(50, channel)
    await asyncio.to_thread(server.publish, channel, "brings the script along")
    for client in clients:
        await client.push()

    with monitored(redis_server, unique) as sent:
        for value in range(3):
            await asyncio.to_thread(server.publish, channel, value)
        for client in clients:
            received = [(await client.push())["data"]["data"] for _ in range(3)]
            assert received == [0, 1, 2]
        commands = sent()

    assert [line.split()[0].upper() for line in commands] == [command] * 3, commands


@pytest.mark.parametrize("namespace", ["plain", "recover"])
async def test_broadcast_is_one_command_for_each_channel(
    shared_cluster: Callable[..., list[Server]],
    redis_server: RedisServer,
    unique: str,
    namespace: str,
) -> None:
    server = shared_cluster(**OPTIONS)[1]
    channels = [f"{namespace}:{unique}-{number}" for number in range(10)]
    await asyncio.to_thread(server.publish, f"{namespace}:{unique}", "brings the script along")

    with monitored(redis_server, unique) as sent:
        reply = await asyncio.to_thread(server.api, "broadcast", channels=channels, data=1)
        commands = sent()

    assert reply == {"result": {}}
    assert len(commands) == 10


async def test_second_subscriber_of_a_process_costs_redis_nothing_but_its_presence(
    shared_cluster: Callable[..., list[Server]],
    redis_server: RedisServer,
    subscribers: Callable[..., Any],
    unique: str,
) -> None:
    """Presence and join are one command each; the group was joined by the first."""
    await subscribers(1, f"joined:{unique}")
    await subscribers(1, f"plain:{unique}")

    with monitored(redis_server, unique) as sent:
        await subscribers(1, f"plain:{unique}")
        assert sent() == []

    with monitored(redis_server, unique) as sent:
        newcomer = (await subscribers(1, f"joined:{unique}"))[0]
        assert (await newcomer.push())["type"] == 1  # its own join
        names = [line.split()[0].upper() for line in sent()]
    assert sorted(names) == ["EVALSHA", "PUBLISH"]
