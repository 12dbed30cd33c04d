"""Signals over several processes, and at the end of one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from realtime.node.node import SHUTDOWN_TIMEOUT
from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import environment
from tests.live.listening_site import OPTIONS, Log
from tests.redis_server import RedisServer
from tests.server import Server


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


@pytest.fixture
def start(
    cluster: Callable[..., list[Server]],
    own_server: Serve,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
    log: Log,
) -> Callable[[int], list[Server]]:
    """Start so many servers of this test, over Redis if there are several."""
    variables = environment(tmp_path_factory, "signals") | {"TEST_SIGNALS": str(log.path)}

    def start(number: int) -> list[Server]:
        if number == 1:
            return [own_server(environment=variables, **OPTIONS)]
        return cluster(number, redis_server, environment=variables, **OPTIONS)

    return start


def occupancy(log: Log, channel: str) -> list[tuple[str, int]]:
    """Kind and process of what receivers heard of a channel, clients aside."""
    entries = [entry for entry in log.entries(channel) if "user" not in entry]
    return [(entry["kind"], entry["pid"]) for entry in entries]


async def test_channel_is_occupied_and_vacated_once_counting_all_processes(
    start: Callable[[int], list[Server]], connect: Connect, log: Log, unique: str
) -> None:
    one, other = start(2)
    channel = f"c-{unique}"
    first, second = await connect(one, user="1"), await connect(other, user="2")
    for client in (first, second):
        await client.result("subscribe", {"channel": channel})
    await log.until(lambda: log.kinds(channel).count("subscribed") == 2)
    await log.until(lambda: "channel_occupied" in log.kinds(channel))
    assert occupancy(log, channel) == [("channel_occupied", one.pid)]

    later = f"{channel}-later"
    await first.result("unsubscribe", {"channel": channel})
    await first.result("subscribe", {"channel": later})
    await log.until(lambda: {"channel_occupied", "subscribed"} <= set(log.kinds(later)))
    assert occupancy(log, channel)[1:] == [("channel_occupied", one.pid)]  # the later one

    await second.socket.close()
    await log.until(lambda: "channel_vacated" in log.kinds(channel), "vacated")
    assert occupancy(log, channel)[2:] == [("channel_vacated", other.pid)]


async def test_clients_that_come_at_the_same_time_occupy_a_channel_once(
    start: Callable[[int], list[Server]], connect: Connect, log: Log, unique: str
) -> None:
    servers = start(2)
    clients = [await connect(server, user="1") for server in servers]
    channels = [f"c{number}-{unique}" for number in range(50)]

    # both are in every channel together before they leave it
    for method, kind in (("subscribe", "channel_occupied"), ("unsubscribe", "channel_vacated")):
        for channel in channels:
            await asyncio.gather(*(c.result(method, {"channel": channel}) for c in clients))
        await log.until(lambda m=method: log.kinds(unique).count(f"{m}d") == 100)  # type: ignore[misc]
        await log.until(lambda k=kind: log.kinds(unique).count(k) >= 50)  # type: ignore[misc]

    for channel in channels:
        kinds = [kind for kind, _ in occupancy(log, channel)]
        assert kinds == ["channel_occupied", "channel_vacated"], channel


async def test_signals_of_a_client_are_sent_by_its_process_only(
    start: Callable[[int], list[Server]], connect: Connect, log: Log, unique: str
) -> None:
    _, other = start(2)
    client = await connect(other, user=unique)
    await client.socket.close()
    entries = await log.wait(client.client, "connected", "disconnected")
    assert {entry["pid"] for entry in entries} == {other.pid}


# the end


@pytest.mark.parametrize("processes", [1, 2], ids=["memory", "redis"])
async def test_receivers_hear_the_end_of_all_clients_when_a_process_stops(
    start: Callable[[int], list[Server]], connect: Connect, log: Log, unique: str, processes: int
) -> None:
    server = start(processes)[0]
    clients = [await connect(server, user=f"linger-{unique}") for _ in range(2)]
    for number, client in enumerate(clients):
        await client.result("subscribe", {"channel": f"c{number}-{unique}"})

    await asyncio.to_thread(server.terminate)

    for number, client in enumerate(clients):
        entries = log.entries(client.client)
        kinds = [entry["kind"] for entry in entries]
        assert kinds == ["connected", "subscribed", "unsubscribed", "disconnected"]
        assert entries[3]["code"] == 3001
        told = [kind for kind, _ in occupancy(log, f"c{number}-{unique}")]
        assert told == ["channel_occupied", "channel_vacated"]
    assert log.kinds(unique).count("lingered") == 2


async def test_receiver_that_never_ends_does_not_keep_a_process_that_stops(
    start: Callable[[int], list[Server]], connect: Connect, log: Log, unique: str
) -> None:
    (server,) = start(1)
    await connect(server, user=f"endless-{unique}")
    await log.until(lambda: "connected" in log.kinds(unique))
    began = time.monotonic()
    await asyncio.to_thread(server.terminate)
    assert time.monotonic() - began < SHUTDOWN_TIMEOUT + 10  # for a busy machine
    assert "the last signals may be lost" in server.log


async def test_what_a_killed_process_had_ends_once_and_begins_anew(
    start: Callable[[int], list[Server]], connect: Connect, log: Log, unique: str
) -> None:
    one, other = start(2)
    channel, alone, both = f"c-{unique}", f"online-alone-{unique}", f"online-both-{unique}"
    client = await connect(one, user=alone)
    await client.result("subscribe", {"channel": channel})
    await connect(one, user=both)
    await connect(other, user=both)
    await log.until(lambda: "channel_occupied" in log.kinds(channel))
    await log.until(lambda: "user_online" in log.kinds(both))

    one.kill()
    await log.until(lambda: "channel_vacated" in log.kinds(channel), "vacated")
    await log.until(lambda: "user_offline" in log.kinds(alone), "offline")
    survivor = await connect(other, user=alone)
    await survivor.result("subscribe", {"channel": channel})
    await log.until(lambda: len(occupancy(log, channel)) >= 3)
    await log.until(lambda: log.kinds(alone).count("user_online") == 2)

    assert occupancy(log, channel) == [
        ("channel_occupied", one.pid),
        ("channel_vacated", other.pid),
        ("channel_occupied", other.pid),
    ]
    (vacated,) = (each for each in log.entries(channel) if each["kind"] == "channel_vacated")
    (offline,) = (each for each in log.entries(alone) if each["kind"] == "user_offline")
    assert (vacated["certain"], offline["certain"]) == (False, False)
    assert offline["pid"] == other.pid
    assert "user_offline" not in log.kinds(both)
