"""The published JavaScript client: subscriptions, publications, queries."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.js_builds import over_every_transport, over_sockjs_alone, over_websocket
from tests.js_client import NewClient
from tests.live.api_methods import result
from tests.server import API_KEY, Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


async def server_api_batch(server: Server, commands: list[dict[str, Any]]) -> None:
    """Send commands to the server API in one request; all must succeed."""
    async with httpx.AsyncClient() as http:
        response = await http.post(
            f"{server.address}/api",
            content="\n".join(json.dumps(command) for command in commands),
            headers={"Authorization": f"apikey {API_KEY}"},
        )
    replies = [json.loads(line) for line in response.text.splitlines()]
    assert replies == [{"result": {}}] * len(commands)


# subscribing


async def test_first_subscribe_is_no_resubscribe_and_recovers_nothing(
    connect_js: NewClient, unique: str
) -> None:
    client = await connect_js()

    context = await client.subscribe(unique)

    assert (context["isResubscribe"], context["recovered"]) == (False, False)


async def test_listed_user_may_subscribe_to_a_user_limited_channel(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"{unique}#18,{unique}"
    client = await connect_js(user=unique)

    await client.subscribe(channel)

    server.publish(channel, 1)
    assert await client.publication(channel) == 1


async def test_refusals_are_errors_with_their_code_and_message(
    connect_js: NewClient, unique: str
) -> None:
    """Each refusal has its tests in `live/protocol`; here it gets through the client's API."""
    client = await connect_js(user=unique)
    await client.subscribe(unique)
    not_subscribed = f"chat:{unique}"

    assert await client.refused(f"nope:{unique}") == (102, "namespace not found")
    assert await client.refused(f"{unique}#18,19") == (103, "permission denied")
    assert await client.error("publish", channel=unique, data={}) == (103, "permission denied")
    for query in ("presence", "presenceStats", "history"):
        assert await client.error(query, channel=unique) == (108, "not available"), query
        assert await client.error(query, channel=not_subscribed) == (103, "permission denied")


@over_every_transport
async def test_unsubscribed_client_gets_no_more_publications(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"chat:{unique}"
    client = await connect_js()
    await client.subscribe(channel)

    await client.call("unsubscribe", channel=channel)

    assert await client.event("unsubscribe", channel) == {"channel": channel}
    await client.settle()
    assert server.api("presence", channel=channel) == {"result": {"presence": {}}}
    server.publish(channel, "unheard")
    await client.settle()
    assert client.unread("publish", channel) == []


async def test_subscribing_again_by_hand_does_not_recover(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"rec:{unique}"
    client = await connect_js()
    await client.subscribe(channel)
    await client.call("unsubscribe", channel=channel)
    await client.settle()
    server.publish(channel, "missed")

    context = await client.subscribe(channel)

    assert (context["isResubscribe"], context["recovered"]) == (False, False)
    server.publish(channel, "heard")
    assert await client.publication(channel) == "heard"


async def test_unsubscribe_by_the_server_api_lasts_beyond_a_reconnect(
    connect_js: NewClient, server: Server, proxy: TcpProxy, unique: str
) -> None:
    channel = f"chat:{unique}"
    client = await connect_js(user=unique, through=proxy)
    await client.subscribe(channel)

    server.api("unsubscribe", channel=channel, user=unique)

    assert await client.event("unsubscribe", channel) == {"channel": channel}
    proxy.cut()
    await client.connected()
    await client.settle()
    assert server.api("presence", channel=channel) == {"result": {"presence": {}}}
    server.publish(channel, "unheard")
    await client.settle()
    assert client.unread("publish", channel) == []


async def test_unsubscribe_by_the_server_api_leaves_other_channels(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    client = await connect_js(user=unique)
    await client.subscribe(unique)
    await client.subscribe(f"{unique}-other")

    server.api("unsubscribe", channel=unique, user=unique)

    await client.event("unsubscribe", unique)
    server.publish(f"{unique}-other", "heard")
    assert await client.publication(f"{unique}-other") == "heard"
    assert client.unread("unsubscribe", f"{unique}-other") == []


# publications


async def test_publication_of_the_server_api_has_no_client_info(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    client = await connect_js()
    await client.subscribe(unique)

    server.publish(unique, {"text": "hello"})

    context = await client.event("publish", unique)
    assert context["data"] == {"text": "hello"}
    assert "info" not in context


async def test_tags_change_nothing_for_a_client_that_knows_none(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    """Those of the first generation have them in JSON."""
    client = await connect_js()
    await client.subscribe(unique)
    server.publish(unique, 1)
    plain = await client.event("publish", unique)

    result(server, "publish", channel=unique, data=1, tags={"team": "red"})

    assert await client.event("publish", unique) == plain


async def test_publication_of_a_client_says_who_published_it(
    connect_js: NewClient, unique: str
) -> None:
    channel = f"chat:{unique}"
    publisher = await connect_js(user=unique, info={"name": "Ann"})
    subscriber = await connect_js()
    await subscriber.subscribe(channel)

    await publisher.publish(channel, {"text": "hello"})

    context = await subscriber.event("publish", channel)
    assert context["data"] == {"text": "hello"}
    assert context["info"] == {
        "user": unique,
        "client": publisher.id,
        "conn_info": {"name": "Ann"},
    }


@over_every_transport
async def test_two_clients_hear_each_other_in_order(connect_js: NewClient, unique: str) -> None:
    channel = f"chat:{unique}"
    players = [await connect_js(), await connect_js()]
    for player in players:
        await player.subscribe(channel)

    for number in range(20):
        await players[number % 2].publish(channel, number)
        for player in players:
            assert await player.publication(channel) == number


@pytest.mark.parametrize(
    "data",
    [
        pytest.param('naïve 日本 🚀 \u2028\u2029\x00\x7f "\\/ <&>', id="unicode"),
        pytest.param({"日本": {"🚀": ["é"]}}, id="unicode-keys"),
        pytest.param([None, True, -1.5, 9007199254740991, "", [], {}], id="every-type"),
        pytest.param("é" * 20_000, id="40-kB-of-two-byte-letters"),
        pytest.param([{"n": n} for n in range(3000)], id="many-objects"),
    ],
)
async def test_payload_of_a_client_arrives_unchanged(
    connect_js: NewClient, unique: str, data: Any
) -> None:
    channel = f"chat:{unique}"
    publisher, subscriber = await connect_js(), await connect_js()
    await subscriber.subscribe(channel)

    await publisher.publish(channel, data)

    assert await subscriber.publication(channel) == data


@over_sockjs_alone
async def test_text_that_a_transport_may_take_for_its_own_arrives_unchanged(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    client = await connect_js()
    await client.subscribe(unique)
    texts = ["100% %41 %25 %zz", "a+b&d=1", "\r\n\r\ndata: o\n", "</script>", "\u2028 é 🚀"]

    for text in texts:
        server.publish(unique, text)

    assert await client.publications(unique, len(texts)) == texts


@over_every_transport
async def test_payload_of_two_megabytes_from_the_server_api_arrives_unchanged(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    """The limit of 65536 bytes is one of what clients send."""
    client = await connect_js()
    await client.subscribe(unique)
    data = "0123456789abcdef" * 131_072

    server.publish(unique, data)

    assert await client.publication(unique) == data


@over_every_transport
async def test_large_publications_of_one_request_arrive_in_order(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    """They leave in the same moment, so the server may join them into large frames."""
    client = await connect_js()
    await client.subscribe(unique)
    texts = [f"{number:2}" + "x" * 60_000 for number in range(40)]

    await server_api_batch(
        server, [{"method": "publish", "params": {"channel": unique, "data": t}} for t in texts]
    )

    assert await client.publications(unique, len(texts)) == texts


@over_websocket
async def test_commands_collected_in_a_batch_travel_in_one_frame(
    connect_js: NewClient, unique: str
) -> None:
    channel = f"chat:{unique}"
    client = await connect_js()
    before = (await client.call("socket"))["sent"]

    await client.call("startBatching")
    for name in (unique, channel):
        await client.call("subscribe", channel=name)
    await client.call("stopBatching")

    await client.event("subscribe", unique)
    await client.event("subscribe", channel)
    assert (await client.call("socket"))["sent"] == before + 1


# presence


async def test_presence_tells_who_is_subscribed(connect_js: NewClient, unique: str) -> None:
    channel = f"chat:{unique}"
    ann = await connect_js(user="ann", info={"name": "Ann"})
    bob = await connect_js(user="bob")
    await ann.subscribe(channel)
    await bob.subscribe(channel)

    result = await ann.call("presence", channel=channel)

    assert result == {
        "presence": {
            ann.id: {"user": "ann", "client": ann.id, "conn_info": {"name": "Ann"}},
            bob.id: {"user": "bob", "client": bob.id},
        }
    }


async def test_presence_stats_count_clients_and_users(connect_js: NewClient, unique: str) -> None:
    channel = f"chat:{unique}"
    clients = [await connect_js(user=user) for user in ("ann", "ann", "bob")]
    for client in clients:
        await client.subscribe(channel)

    stats = await clients[0].call("presenceStats", channel=channel)

    assert stats == {"num_clients": 3, "num_users": 2}


async def test_subscriber_sees_joins_its_own_included(connect_js: NewClient, unique: str) -> None:
    channel = f"chat:{unique}"
    ann = await connect_js(user="ann", info={"name": "Ann"})
    bob = await connect_js(user="bob")

    await ann.subscribe(channel)
    await bob.subscribe(channel)

    first, second = await ann.event("join", channel), await ann.event("join", channel)
    assert first["info"] == {"user": "ann", "client": ann.id, "conn_info": {"name": "Ann"}}
    assert second["info"] == {"user": "bob", "client": bob.id}


@pytest.mark.parametrize("way", ["unsubscribe", "disconnect"])
async def test_subscriber_sees_another_one_leave(
    connect_js: NewClient, unique: str, way: str
) -> None:
    channel = f"chat:{unique}"
    ann, bob = await connect_js(user="ann"), await connect_js(user="bob")
    await ann.subscribe(channel)
    await bob.subscribe(channel)

    await bob.call(way, channel=channel)

    assert await ann.event("leave", channel) == {"info": {"user": "bob", "client": bob.id}}


# history


async def test_history_is_oldest_first(connect_js: NewClient, server: Server, unique: str) -> None:
    channel = f"chat:{unique}"
    for number in (1, 2, 3):
        server.publish(channel, {"number": number})
    client = await connect_js()
    await client.subscribe(channel)

    history = await client.call("history", channel=channel)

    kept = [publication["data"] for publication in history["publications"]]
    assert kept == [{"number": 1}, {"number": 2}, {"number": 3}]


async def test_history_keeps_who_published(connect_js: NewClient, unique: str) -> None:
    channel = f"chat:{unique}"
    client = await connect_js(user="ann")
    await client.subscribe(channel)
    await client.publish(channel, "mine")

    history = await client.call("history", channel=channel)

    [publication] = history["publications"]
    assert publication["info"] == {"user": "ann", "client": client.id}


async def test_empty_history_has_no_publications(connect_js: NewClient, unique: str) -> None:
    client = await connect_js()
    await client.subscribe(f"chat:{unique}")

    history = await client.call("history", channel=f"chat:{unique}")

    assert history["publications"] == []
