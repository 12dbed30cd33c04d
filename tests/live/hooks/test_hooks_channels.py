"""subscribe and publish: the site decides about channels."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from centrifuge import ReplyError

from tests.conftest import subscription_token
from tests.live.configurations import Connect, Serve
from tests.live.python_client import python_client
from tests.protocol_client import ProtocolClient
from tests.server import Server

DENIED = {"code": 103, "message": "permission denied"}
FAILURE = {"code": 100, "message": "internal server error"}


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site whose hooks do what channels are called."""
    return site("strange")


# subscribe


async def test_answer_is_channel_info_in_join_presence_and_publications(
    client: ProtocolClient, unique: str, format_name: str
) -> None:
    channel = f"ask:info-{unique}"
    info = {
        "user": "17",
        "client": client.client,
        "chan_info": {"params": {"what": "info", "rest": unique}},
    }

    await client.result("subscribe", {"channel": channel})

    assert (await client.push())["data"] == {"info": info}
    presence = await client.result("presence", {"channel": channel})
    assert presence["presence"] == {client.client: info}
    await client.result("publish", {"channel": channel, "data": {"answer": "none"}})
    assert (await client.publication())["info"] == info


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("false", DENIED),
        ("denied", DENIED),
        ("error", {"code": 1020, "message": "full"}),
        ("failure", FAILURE),
        ("object", FAILURE),
    ],
)
async def test_client_may_not_subscribe(
    client: ProtocolClient,
    server: Server,
    unique: str,
    answer: str,
    error: dict[str, Any],
    format_name: str,
) -> None:
    channel = f"ask:{answer}-{unique}"
    assert await client.error("subscribe", {"channel": channel}) == error
    assert server.api("presence", channel=channel) == {"result": {"presence": {}}}
    server.publish(channel, 1)
    await client.quiet()


async def test_subscribe_hook_disconnects_with_its_code(
    client: ProtocolClient, unique: str, format_name: str
) -> None:
    await client.send("subscribe", {"channel": f"ask:disconnect-{unique}"})
    assert await client.closed() == (4020, '{"reason":"banned","reconnect":false}')


async def test_hook_gets_the_token_the_client_sent(client: ProtocolClient, unique: str) -> None:
    await client.result("subscribe", {"channel": f"ask:token-{unique}", "token": "abc"})
    assert (await client.push())["data"]["info"]["chan_info"] == {"token": "abc"}


async def test_private_channel_is_decided_by_its_token(client: ProtocolClient, unique: str) -> None:
    channel = f"$ask:{unique}"
    token = subscription_token(client.client, channel)
    assert await client.result("subscribe", {"channel": channel, "token": token}) == {}


async def test_user_limited_channel_is_decided_by_its_name(
    server: Server, connect: Connect, unique: str
) -> None:
    client = await connect(server, user=unique)
    assert await client.result("subscribe", {"channel": f"ask:limited#{unique}"}) == {}
    assert await client.error("subscribe", {"channel": f"ask:limited#{unique}x"}) == DENIED


async def test_options_are_asked_before_the_hook(client: ProtocolClient, unique: str) -> None:
    """The namespace is server_side, and the hook would answer with an error of its own."""
    assert await client.error("subscribe", {"channel": f"closed:{unique}"}) == DENIED


# publish


async def publish(
    server: Server, connect: Connect, unique: str, data: Any
) -> tuple[Any, dict[str, Any]]:
    """Publish data that tell the hook what to answer; the client is subscribed. The reply."""
    client = await connect(server)
    await client.result("subscribe", {"channel": f"ask:none-{unique}"})
    await client.push()  # its own join
    reply = await client.call("publish", {"channel": f"ask:none-{unique}", "data": data})
    return client, reply


async def test_publication_is_replaced(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    client, _ = await publish(server, connect, unique, {"answer": "other"})
    publication = await client.publication()
    assert publication["data"] == {"instead": {"what": "none", "rest": unique}}
    assert publication["info"]["user"] == "17"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("false", DENIED),
        ("error", {"code": 1030, "message": "rude"}),
        ("failure", FAILURE),
        ("object", FAILURE),
    ],
)
async def test_rejected_publication_reaches_nobody(
    server: Server,
    connect: Connect,
    unique: str,
    answer: str,
    error: dict[str, Any],
    format_name: str,
) -> None:
    client, reply = await publish(server, connect, unique, {"answer": answer})
    assert reply["error"] == error
    await client.quiet()


async def test_publish_hook_disconnects_with_its_code(client: ProtocolClient, unique: str) -> None:
    params = {"channel": f"ask:none-{unique}", "data": {"answer": "disconnect"}}
    await client.send("publish", params)
    assert await client.closed() == (4030, '{"reason":"too rude","reconnect":false}')


async def test_half_of_a_character_reaches_the_hook_and_the_subscribers(
    server: Server, connect: Connect, unique: str
) -> None:
    """Browsers write halves of surrogate pairs, for text cut inside an emoji."""
    data = b'{"answer": "none", "text": "\\ud83d"}'
    client, reply = await publish(server, connect, unique, data)
    assert "error" not in reply
    assert (await client.publication())["data"] == {"answer": "none", "text": "\ufffd"}


async def test_option_publish_is_asked_before_the_hook(
    site: Serve, connect: Connect, unique: str
) -> None:
    server = site("strange", namespaces=[{"name": "ask"}])
    client = await connect(server)
    params = {"channel": f"ask:none-{unique}", "data": {"answer": "error"}}
    assert await client.error("publish", params) == DENIED


async def test_server_api_publishes_without_asking(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    await client.result("subscribe", {"channel": f"ask:none-{unique}"})
    await client.push()  # its own join
    server.publish(f"ask:none-{unique}", {"answer": "error"})
    assert (await client.publication())["data"] == {"answer": "error"}


@pytest.mark.parametrize("protobuf", [False, True], ids=["json", "protobuf"])
async def test_published_client_learns_where_its_data_are_of_another_type(
    server: Server, unique: str, protobuf: bool
) -> None:
    channel = f"ask:true-typed{unique}"
    good: dict[str, Any] = {"answer": "none", "numbers": [1, 2]}
    wrong = good | {"numbers": [1, "2"]}
    async with python_client(server.socket, use_protobuf=protobuf) as client:
        await client.connect()
        subscription = client.new_subscription(channel)
        await subscription.subscribe()
        async with asyncio.timeout(60):
            with pytest.raises(ReplyError) as refused:
                await subscription.publish(json.dumps(wrong).encode() if protobuf else wrong)
            await subscription.publish(json.dumps(good).encode() if protobuf else good)

    assert (refused.value.code, refused.value.message) == (
        107,
        "bad request: Expected `int`, got `str` - at `$.numbers[1]`",
    )
