"""The published JavaScript client: subscriptions, publications, queries."""

from __future__ import annotations

from tests.js_builds import over_every_transport, over_sockjs_alone, over_websocket
from tests.js_client import NewClient
from tests.server import Server
from tests.tcp_proxy import TcpProxy

pytest_plugins = ["tests.js_fixtures"]


# subscribing


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


# publications


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


# presence, joins, history


async def test_answers_and_joins_are_told_as_the_server_sends_them(
    connect_js: NewClient, server: Server, unique: str
) -> None:
    channel = f"chat:{unique}"
    for number in (1, 2, 3):
        server.publish(channel, {"number": number})
    ann = await connect_js(user="ann", info={"name": "Ann"})
    bob = await connect_js(user="bob")
    await ann.subscribe(channel)
    await bob.subscribe(channel)

    presence = await ann.call("presence", channel=channel)
    history = await bob.call("history", channel=channel)

    infos = [
        {"user": "ann", "client": ann.id, "conn_info": {"name": "Ann"}},
        {"user": "bob", "client": bob.id},
    ]
    assert presence == {"presence": {ann.id: infos[0], bob.id: infos[1]}}
    assert [(await ann.event("join", channel))["info"] for _ in range(2)] == infos
    kept = [publication["data"]["number"] for publication in history["publications"]]
    assert kept == [1, 2, 3], "oldest first"
