"""The chat of the test site: what docs/hooks.md shows, at work."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import create_user
from tests.protocol_client import ProtocolClient
from tests.server import Server


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site with the chat."""
    return site()


async def test_module_of_an_app_is_found_and_its_connect_hook_asked(
    server: Server, connect: Connect, format_name: str
) -> None:
    client = await connect(server, user=None, connected=False)

    result = await client.result("connect", {"data": {"key": "0123"}})

    assert result["data"] == {"interval": 10}
    assert list(result["subs"]) == ["device:all"]
    # renewed by the refresh hook, so the client need not do anything
    assert "expires" not in result
    assert "ttl" not in result
    present = server.api("presence", channel="device:all")["result"]["presence"]
    assert present[result["client"]] == {
        "user": "device-0123",
        "client": result["client"],
        "conn_info": {"name": "lamp"},
    }


async def test_device_with_a_wrong_key_is_disconnected_with_the_code_of_the_site(
    newcomer: ProtocolClient, format_name: str
) -> None:
    await newcomer.send("connect", {"data": {"key": "9"}})
    assert await newcomer.closed() == (4001, '{"reason":"unknown device","reconnect":false}')


async def test_member_enters_a_room_and_others_see_the_channel_info(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    _, pk = create_user(server, unique, is_staff=True)
    _, other_pk = create_user(server, unique)
    channel = f"room:{unique}"
    other = await connect(server, user=other_pk)
    await other.result("subscribe", {"channel": channel})
    await other.push()  # its own join

    client = await connect(server, user=pk)
    await client.result("subscribe", {"channel": channel})

    info = {"user": pk, "client": client.client, "chan_info": {"staff": True}}
    assert (await other.push())["data"] == {"info": info}
    present = (await other.result("presence", {"channel": channel}))["presence"]
    assert present[client.client] == info
    assert present[other.client]["chan_info"] == {"staff": False}


async def test_who_is_no_member_gets_error_103(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    _, pk = create_user(server, f"{unique}-other")
    client = await connect(server, user=pk)
    error = await client.error("subscribe", {"channel": f"room:{unique}"})
    assert error == {"code": 103, "message": "permission denied"}


@pytest.mark.parametrize(
    ("name", "subscribes"),
    [
        ("room:public:{}", None),
        ("room:1:{}", 103),
        ("room:", 103),
        ("board-", 103),
        ("{}", 103),
        ("members:{}", None),
    ],
)
async def test_channel_that_no_pattern_of_its_namespace_matches_is_refused(
    server: Server,
    connect: Connect,
    unique: str,
    name: str,
    subscribes: int | None,
    format_name: str,
) -> None:
    channel = name.format(unique)
    _, pk = create_user(server, unique)
    client = await connect(server, user=pk)

    reply = await client.call("subscribe", {"channel": channel})

    assert reply.get("error", {}).get("code") == subscribes
    if channel.startswith("room:"):
        published = await client.call("publish", {"channel": channel, "data": {"text": "a"}})
        assert published["error"]["code"] == 103
        # the server API belongs to the site, and no hook is asked
        assert server.api("publish", channel=channel, data={"text": "a"}).get("error") is None


async def test_coroutine_decides_with_the_asynchronous_orm(
    server: Server, connect: Connect, unique: str
) -> None:
    _, pk = create_user(server)
    customer, stranger = await connect(server, user=pk), await connect(server, user="0")
    assert await customer.result("subscribe", {"channel": f"stock:{unique}"}) == {}
    error = await stranger.error("subscribe", {"channel": f"stock:{unique}"})
    assert error == {"code": 1001, "message": "stock is for customers"}


async def test_publication_is_replaced_and_says_who_published_it(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    _, pk = create_user(server, unique)
    channel = f"room:{unique}"
    client = await connect(server, user=pk)
    await client.result("subscribe", {"channel": channel})
    await client.push()  # its own join

    await client.result("publish", {"channel": channel, "data": {"text": " hi ", "more": 1}})

    publication = await client.publication()
    assert publication["data"] == {"text": "hi", "room": unique}
    assert publication["info"]["user"] == pk


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"text": " "}, {"code": 103, "message": "permission denied"}),
        ({"text": 1}, {"code": 1002, "message": "an object with a text is wanted"}),
        ("text", {"code": 1002, "message": "an object with a text is wanted"}),
    ],
    ids=["refused", "own error", "own error for text"],
)
async def test_publication_is_rejected_and_reaches_nobody(
    server: Server, connect: Connect, unique: str, data: Any, error: dict[str, Any]
) -> None:
    _, pk = create_user(server, unique)
    client = await connect(server, user=pk)
    await client.result("subscribe", {"channel": f"room:{unique}"})
    await client.push()  # its own join
    assert await client.error("publish", {"channel": f"room:{unique}", "data": data}) == error
    await client.quiet()


async def test_method_answers(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    usernames = sorted(create_user(server, unique)[0] for _ in range(2))
    client = await connect(server)
    assert await client.result("rpc", {"method": "add", "data": {"a": 1, "b": 2}}) == {"data": 3}
    answer = await client.result("rpc", {"method": "room.members", "data": unique})
    assert answer == {"data": usernames}
    error = await client.error("rpc", {"method": "room.members", "data": f"{unique}-other"})
    assert error == {"code": 1004, "message": "no such room"}


async def test_message_reaches_the_site(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": f"seen#{unique}"})
    await client.send("send", {"data": {"read": 7}})
    assert (await client.publication())["data"] == {"read": 7}
