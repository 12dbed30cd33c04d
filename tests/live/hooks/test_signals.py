"""Signals of Django about clients and channels, from a real server to receivers of a site."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import environment
from tests.live.listening_site import OPTIONS, Log
from tests.server import Server
from tests.site.listening.receivers import SLOW


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return Log(tmp_path_factory.mktemp("signals") / "log")


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory, log: Log) -> Server:
    """The site whose receivers write into the log."""
    variables = environment(tmp_path_factory, "signals") | {"TEST_SIGNALS": str(log.path)}
    return serve(environment=variables, **OPTIONS)


def without(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    """What a receiver got, without what it wrote of itself."""
    ours = {"pid", "held", "thread", *names}
    return {name: value for name, value in entry.items() if name not in ours}


async def test_receivers_hear_the_life_of_a_client_in_order(
    server: Server, connect: Connect, log: Log, unique: str, format_name: str
) -> None:
    user, channel = f"user-{unique}", f"c-{unique}"
    client = await connect(server, user=user)
    who = {"user": user, "client": client.client}
    await client.result("subscribe", {"channel": channel})
    await client.result("unsubscribe", {"channel": channel})
    await client.socket.close()

    entries = await log.wait(
        client.client, "connected", "subscribed", "unsubscribed", "disconnected"
    )

    assert [without(entry) for entry in entries] == [
        {"kind": "connected", **who},
        {"kind": "subscribed", **who, "channel": channel},
        {"kind": "unsubscribed", **who, "channel": channel},
        {"kind": "disconnected", **who, "code": 0},
    ]
    assert {entry["thread"] for entry in entries} == {"realtime-signals"}


async def test_receivers_hear_that_the_server_unsubscribed(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": f"c-{unique}"})

    server.api("unsubscribe", user=unique, channel=f"c-{unique}")

    entries = await log.wait(client.client, "connected", "subscribed", "unsubscribed")
    assert without(entries[2]) == {
        "kind": "unsubscribed",
        "user": unique,
        "client": client.client,
        "channel": f"c-{unique}",
    }


@pytest.mark.parametrize("code", [0, 3012], ids=["gone without a word", "disconnected"])
async def test_receivers_hear_the_code_with_which_a_connection_ends(
    server: Server, connect: Connect, log: Log, unique: str, code: int
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": f"c-{unique}"})
    if code:
        server.api("disconnect", user=unique)
        assert (await client.closed())[0] == code
    else:
        await client.abort()
    kinds = ("connected", "subscribed", "unsubscribed", "disconnected")
    assert (await log.wait(client.client, *kinds))[3]["code"] == code


async def test_client_is_connected_before_it_is_subscribed_by_the_server(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    token = connection_token(unique, channels=[f"a-{unique}"])
    client = await connect(server, token=token)
    entries = await log.wait(client.client, "connected", "subscribed")
    assert entries[1]["channel"] == f"a-{unique}"


async def test_nobody_hears_of_a_client_that_was_not_let_in(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    client = await connect(server, connected=False)
    await client.send("connect", {"token": "no token"})
    assert (await client.closed())[0] == 3002
    later = await connect(server, user=f"later-{unique}")
    await log.wait(later.client, "connected")
    assert [entry for entry in log.entries("disconnected") if not entry["user"]] == []


async def test_nobody_hears_of_a_subscription_that_was_refused(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    client = await connect(server, user=unique)
    await client.error("subscribe", {"channel": f"nope:{unique}"})
    await client.result("subscribe", {"channel": f"c-{unique}"})
    entries = await log.wait(client.client, "connected", "subscribed")
    assert entries[1]["channel"] == f"c-{unique}"
    assert "nope" not in {entry.get("channel", "").partition(":")[0] for entry in log.entries("")}


async def test_channel_is_occupied_by_the_first_and_vacated_by_the_last(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    channel = f"c-{unique}"
    first, last = [await connect(server, user="17") for _ in range(2)]
    for client in (first, last):
        await client.result("subscribe", {"channel": channel})
    await first.result("unsubscribe", {"channel": channel})
    await last.socket.close()
    await log.until(lambda: len(log.entries(channel)) == 6)

    occupancy = [entry for entry in log.entries(channel) if "user" not in entry]

    assert [without(entry) for entry in occupancy] == [
        {"kind": "channel_occupied", "channel": channel},
        {"kind": "channel_vacated", "channel": channel, "certain": True},
    ]
    kinds = log.kinds(channel)
    assert kinds.index("channel_occupied") < kinds.index("subscribed")
    assert kinds.index("channel_vacated") > kinds.index("unsubscribed")


# what receivers do


async def test_slow_receiver_stalls_no_client_and_keeps_the_order(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    began = time.monotonic()
    clients = [await connect(server, user=f"{name}-{unique}") for name in ("slow", "other")]
    for client in clients:
        await client.result("subscribe", {"channel": f"c-{unique}"})
        await client.quiet()
    took = time.monotonic() - began

    assert took < SLOW
    kinds = ["connected", "again", "connected", "again", "channel_occupied"]
    await log.wait(unique, *kinds, "subscribed", "subscribed")
    assert time.monotonic() - began >= SLOW


async def test_receiver_leaves_no_database_connection_behind(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    client = await connect(server, user=f"query-{unique}")
    await client.result("subscribe", {"channel": f"c-{unique}"})
    entries = await log.wait(unique, "connected", "again", "channel_occupied", "subscribed")
    assert [entry["held"] for entry in entries if "held" in entry] == [False] * 3
    assert "AssertionError" not in server.log


async def test_asynchronous_receiver_uses_the_asynchronous_orm(
    server: Server, connect: Connect, log: Log, unique: str
) -> None:
    client = await connect(server, user=f"async-{unique}")
    await client.result("subscribe", {"channel": f"c-{unique}"})
    await log.until(lambda: len(log.entries(unique)) == 5)
    (looked_up,) = (entry for entry in log.entries(unique) if entry["kind"] == "looked up")
    assert looked_up["number"] == 0
    assert {entry["held"] for entry in log.entries(unique) if "held" in entry} == {False}


async def test_receiver_can_publish(server: Server, connect: Connect, unique: str) -> None:
    user = f"publish-{unique}"
    client = await connect(server, user=user)
    await client.result("subscribe", {"channel": f"c-{unique}"})
    assert await client.publication() == {"data": {"subscribed": user}}
