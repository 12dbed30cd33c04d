"""Nodes of the previous version and of this one work on one Redis, as during a rolling restart.

The previous version has no PostgreSQL engine; `engine/postgresql/test_upgrade.py` has its tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.chaos import old_version
from tests.chaos.harness import OPTIONS, chaos
from tests.conftest import new_word, start_server
from tests.live.clusters import name_of
from tests.live.processes import call_view, environment, worker
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

Cluster = Callable[..., list[Server]]
Connect = Callable[..., Any]
OwnRedis = Callable[..., RedisServer]

SHUTDOWN = 3001

DISCONNECTED = (3012, '{"reason":"force disconnect","reconnect":false}')


class Version(NamedTuple):
    """Whose code a process runs: arguments of `start_server`."""

    cwd: Path
    environment: Mapping[str, str]


class Service(NamedTuple):
    """A service with a node of each version."""

    options: Mapping[str, Any]
    old: Server
    new: Server

    @property
    def ways(self) -> list[tuple[Server, Server]]:
        """From the old version to the new one, and back."""
        return [(self.old, self.new), (self.new, self.old)]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """The previous version."""
    tree = tmp_path_factory.mktemp("old")
    old_version.unpack(tree)
    return Version(tree, old_version.environment(tree))


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer, old: Version
) -> Iterator[Service]:
    options: dict[str, Any] = {
        "redis_url": redis_server.url,
        "redis_prefix": new_word(),
        "v3_use_offset": True,
        "presence": True,
    }
    previous: dict[str, Any] = {**options, **old._asdict()}
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start_server, tmp_path_factory, **options)
        one = start_server(tmp_path_factory, **previous)
        stack.callback(one.discard)
        other = starting.result()
        stack.callback(other.discard)
        yield Service(options, one, other)


def ask(server: Server, function: str, *arguments: Any) -> Any:
    """Call a function of the public API in a view, which must succeed."""
    outcome = call_view(server, "sync-view", function, *arguments)
    assert "error" not in outcome, outcome
    return outcome["result"]


async def test_rolling_restart_from_the_previous_version_loses_nothing(
    cluster: Cluster, own_redis: OwnRedis, old: Version, unique: str
) -> None:
    redis = own_redis()
    options = {"redis_prefix": unique, **OPTIONS}
    before = cluster(2, redis, **old._asdict(), **options)
    async with chaos(
        before, [f"rec:{unique}a", f"rec:{unique}b"], subscribers=12, pause=0.03
    ) as everybody:
        everybody.publishers.start()
        await everybody.publishers.progress(10)

        for server in before:
            [replacement] = await asyncio.to_thread(cluster, 1, redis, **options)
            everybody.go_on_at(replacement, after=server)
            assert await asyncio.to_thread(server.terminate) == 0
            await everybody.publishers.progress(10)
            await everybody.subscribers.live()
        await everybody.settle()

        for subscriber in everybody.subscribers.all:
            assert subscriber.closes == [SHUTDOWN], subscriber.story
            for channel in subscriber.channels:
                assert subscriber.recovered[channel] == [True], subscriber.story


async def test_presence_and_publications_of_clients_reach_the_other_version(
    service: Service, connect: Connect, unique: str
) -> None:
    clients = {
        name: await connect(server, user=f"{unique}-{name}")
        for name, server in (("old", service.old), ("new", service.new))
    }
    for client in clients.values():
        await client.result("subscribe", {"channel": unique})

    for server in (service.old, service.new):
        presence = server.api("presence", channel=unique)["result"]["presence"]
        assert {entry["user"] for entry in presence.values()} == {
            f"{unique}-old",
            f"{unique}-new",
        }
    for number, server in enumerate((service.old, service.new)):
        server.publish(unique, number)
        for client in clients.values():
            assert (await client.publication())["data"] == number


async def test_control_messages_reach_clients_at_the_other_version(
    service: Service, connect: Connect, unique: str
) -> None:
    for number, (here, there) in enumerate(service.ways):
        user = f"{unique}-{number}"
        client = await connect(there, user=user)
        await client.result("subscribe", {"channel": user})
        assert here.api("unsubscribe", channel=user, user=user) == {"result": {}}
        assert (await client.push())["type"] == 3
        assert here.api("disconnect", user=user) == {"result": {}}
        assert await client.closed() == DISCONNECTED


async def test_surveys_are_answered_by_the_other_version(
    service: Service, connect: Connect, unique: str
) -> None:
    names = {name_of(service.old), name_of(service.new)}
    for server in (service.old, service.new):
        client = await connect(server, user=unique)
        await client.result("subscribe", {"channel": unique})

    for server in (service.old, service.new):
        wait_until(
            lambda: {node["name"] for node in server.api("info")["result"]["nodes"]} == names,  # noqa: B023
            what="each node knows both",
        )
        assert {status["name"] for status in ask(server, "nodes")} == names
        assert {one["node"] for one in ask(server, "connections", unique)} == names
        assert ask(server, "subscribers", [unique]) == {unique: 2}


async def test_worker_of_one_version_reaches_clients_at_the_other(
    service: Service, connect: Connect, old: Version, unique: str, tmp_path: Path
) -> None:
    usual = environment(tmp_path, service.options)
    with (
        worker({**usual, **old.environment}, old.cwd) as old_worker,
        worker(usual) as new_worker,
    ):
        for number, (process, server) in enumerate(
            [(old_worker, service.new), (new_worker, service.old)]
        ):
            user = f"{unique}-{number}"
            client = await connect(server, user=user)
            await client.result("subscribe", {"channel": user})

            assert "error" not in process.call("call", "publish", user, number)
            assert (await client.publication())["data"] == number
            assert list(process.call("call", "presence", user)["result"]) == [client.client]
            assert "error" not in process.call("call", "disconnect", user)
            assert await client.closed() == DISCONNECTED
