"""The published JavaScript clients of the second generation, unmodified, at one server."""

from __future__ import annotations

import pytest

from tests.js_builds import Build
from tests.js_client import Driver
from tests.js_next import JSON_5, NEXT_BUILDS, PROTOBUF_5, SOCKJS_5, open_next
from tests.live.second.conftest import OpenNext, over, over_each_transport
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]

every_build = pytest.mark.parametrize("build", NEXT_BUILDS, ids=[b.name for b in NEXT_BUILDS])
both_formats = pytest.mark.parametrize("build", [JSON_5, PROTOBUF_5], ids=["json", "protobuf"])


@pytest.mark.parametrize(
    "build", [*NEXT_BUILDS, SOCKJS_5], ids=[b.name for b in (*NEXT_BUILDS, SOCKJS_5)]
)
async def test_subscribes_publishes_and_asks(
    connect_next: OpenNext, build: Build, unique: str
) -> None:
    client = await connect_next(build)
    channel = f"chat:{unique}"

    context = await client.subscribe(channel)
    await client.call("publish", channel=channel, data={"text": "hi"})

    assert (context["recoverable"], context["positioned"]) == (True, True)
    assert await client.publication(channel) == {"text": "hi"}
    presence = await client.call("presence", channel=channel)
    assert presence["clients"][client.id]["user"] == "17"
    stats = await client.call("presenceStats", channel=channel)
    assert (stats["numClients"], stats["numUsers"]) == (1, 1)
    history = await client.call("history", channel=channel, options={"limit": 10})
    assert [p["data"] for p in history["publications"]] == [{"text": "hi"}]
    assert history["offset"] == 1
    await client.call("send", data={"ignored": True})
    await client.call("unsubscribe", channel=channel)
    assert (await client.event("unsubscribed", channel))["code"] == 0


@pytest.mark.parametrize("build", [JSON_5, PROTOBUF_5], ids=["json", "protobuf"])
async def test_subscriptions_of_the_first_frame_are_answered(
    next_driver: Driver, server: Server, build: Build, unique: str
) -> None:
    client = await open_next(next_driver, build, server.socket)
    await client.begin_to_subscribe(f"chat:{unique}")
    await client.begin_to_subscribe("nowhere:a")
    await client.connect()
    await client.event("subscribed", f"chat:{unique}")
    assert (await client.event("unsubscribed", "nowhere:a"))["code"] == 102


@every_build
async def test_recovers_what_it_missed(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    client = await connect_next(build, through=proxy)
    channel = f"chat:{unique}"
    await client.subscribe(channel)
    server.publish(channel, 1)
    assert await client.publication(channel) == 1

    async with client.away(proxy):
        for value in (2, 3, 4):
            server.publish(channel, value)
    await client.recovered(channel)
    server.publish(channel, 5)

    assert await client.publications(channel, 4) == [2, 3, 4, 5]
    await client.settle()
    assert client.unread("publication", channel) == []


@both_formats
async def test_deltas_are_declined_where_the_channel_has_none(
    connect_next: OpenNext, server: Server, proxy: TcpProxy, build: Build, unique: str
) -> None:
    client = await connect_next(build, through=proxy)
    channel = f"chat:{unique}"
    text = "the same long text, " * 20
    await client.subscribe(channel, delta="fossil")
    for value in (1, 2):
        server.publish(channel, {"text": text, "value": value})
    live = await client.publications(channel, 2)

    async with client.away(proxy):
        server.publish(channel, {"text": text, "value": 3})
    await client.recovered(channel)

    assert [*live, await client.publication(channel)] == [
        {"text": text, "value": value} for value in (1, 2, 3)
    ]


@over_each_transport
async def test_every_transport_does_the_same(
    next_driver: Driver, server: Server, build: Build, transport: str, unique: str
) -> None:
    client = await over(next_driver, server, build, transport)
    channel = f"chat:{unique}"
    await client.subscribe(channel)
    await client.call("publish", channel=channel, data=1)
    assert await client.publication(channel) == 1
    presence = await client.call("presence", channel=channel)
    assert presence["clients"].keys() == {client.id}
    await client.settle()

    await client.call("disconnect")
    server.publish(channel, 2)
    await client.connect()
    await client.recovered(channel)
    assert await client.publication(channel) == 2


@both_formats
async def test_subscription_begins_at_a_given_position(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    client = await connect_next(build)
    channel = f"chat:{unique}"
    for value in (1, 2):
        server.publish(channel, value)
    await client.subscribe(channel, since={"offset": 0, "epoch": ""})
    assert await client.publications(channel, 2) == [1, 2]


async def test_subscription_goes_on_with_a_new_token(connect_next: OpenNext) -> None:
    client = await connect_next(JSON_5)
    await client.begin_to_subscribe("$plain:a", asksToken=True)
    await client.grant_next(ttl=3)
    await client.event("subscribed", "$plain:a")
    await client.grant_next(ttl=60)
    await client.settle()
    assert client.unread("unsubscribed", "$plain:a") == []


@both_formats
async def test_server_unsubscribes_and_disconnects(
    connect_next: OpenNext, server: Server, build: Build, unique: str
) -> None:
    client = await connect_next(build, user=unique)
    await client.subscribe("plain:a")
    assert server.api("unsubscribe", user=unique, channel="plain:a") == {"result": {}}
    assert (await client.event("unsubscribed", "plain:a"))["code"] == 2000
    assert server.api("disconnect", user=unique) == {"result": {}}
    context = await client.event("disconnected")
    assert (context["code"], context["reason"]) == (3503, "force disconnect")


# both generations in one channel
