"""publish and broadcast of the server API: what subscribers get and what history keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.api_client import line, post, subscribe
from tests.live.configurations import Connect
from tests.protocol_client import ProtocolClient
from tests.server import Server

BAD_REQUEST = {"error": {"code": 107, "message": "bad request"}}
NOT_FOUND = {"error": {"code": 102, "message": "namespace not found"}}


DATA: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "fraction": 1.5,
    "empty string": "",
    "text": 'h\xe9\u4e16\U0001f600 <b>&amp;</b> \u2028\u2029 \\ " \n',
    "empty array": [],
    "empty object": {},
    "nested": {"a": [1, {"b": None}], "": "c"},
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
async def test_any_json_value_is_published(
    client: ProtocolClient, server: Server, unique: str, format_name: str, data: Any
) -> None:
    await subscribe(client, unique)
    assert server.api("publish", channel=unique, data=data) == {"result": {}}
    assert await client.push() == {"channel": unique, "data": {"data": data}}


# the words of a payload are kept, whatever numbers and keys it has
SPELT = '{ "z" : 1.0,\t"a": 1E5, "a" : [ 12345678901234567890123 , -0 ] ,\n"t" : "<&>\xe9\u2028" }'
COMPACT = (
    '{"z":1.0,"a":1E5,"a":[12345678901234567890123,-0],"t":"\\u003c\\u0026\\u003e\xe9\\u2028"}'
)


def spelt_command(channel: str) -> bytes:
    return f'{{"method":"publish","params":{{"channel":"{channel}","data":{SPELT}}}}}'.encode()


async def test_data_are_compact_for_json_clients_and_otherwise_as_they_were_spelt(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    clients = {name: await connect(server, format_name=name) for name in ("json", "protobuf")}
    for client in clients.values():
        await subscribe(client, unique)

    assert post(server, spelt_command(unique)).body == b'{"result":{}}\n'
    post(server, spelt_command(channel))
    for client in clients.values():
        await client.push()

    expected = f'{{"result":{{"channel":"{unique}","data":{{"data":{COMPACT}}}}}}}\n'
    assert clients["json"].frames[-1] == expected
    assert SPELT.encode() in clients["protobuf"].frames[-1]
    history = post(server, line("history", {"channel": channel})).body
    assert f'"data":{COMPACT}}}'.encode() in history


async def test_publication_of_the_api_has_no_info_and_a_position_where_history_is_on(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    channel = f"kept:{unique}"
    await subscribe(client, channel)

    server.publish(channel, 1)
    server.publish(channel, 2)

    assert [await client.publication() for _ in range(2)] == [
        {"seq": 1, "data": 1},
        {"seq": 2, "data": 2},
    ]


NAMES = {
    "empty namespace": ":{}",
    "two boundaries": "::{}",
    "boundary after the namespace": "kept:{}:b",
    "private": "${}",
    "private in a namespace": "$kept:{}",
    "limited to another user": "{}#18",
    "reserved characters": "{}*&/ b\n",
    "HTML": "{}<b>&",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_rules_for_clients_do_not_bind_the_api(server: Server, unique: str, name: str) -> None:
    assert server.api("publish", channel=name.format(unique), data=1) == {"result": {}}


def test_channel_longer_than_allowed_is_refused(server: Server, unique: str) -> None:
    channel = f"kept:{unique}" + "x" * 1000
    error = server.api("publish", channel=channel, data=1)["error"]
    assert error == {"code": 106, "message": "limit exceeded"}


async def test_subscriber_of_another_channel_and_of_a_refused_publication_gets_nothing(
    client: ProtocolClient, server: Server, unique: str
) -> None:
    await subscribe(client, unique)
    for name in (f"{unique}b", f"off:{unique}", f"${unique}"):
        server.publish(name, 1)
    assert server.api("publish", channel=unique) == BAD_REQUEST
    assert server.api("broadcast", channels=[unique, 5], data=1) == BAD_REQUEST
    assert server.api("broadcast", channels=[unique]) == BAD_REQUEST
    await client.quiet()


# broadcast


async def test_broadcast_publishes_into_every_channel_as_often_as_it_is_named(
    client: ProtocolClient, server: Server, unique: str, format_name: str
) -> None:
    channels = [f"{unique}a", f"off:{unique}", f"kept:{unique}", f"{unique}a"]
    await subscribe(client, *channels[:3])
    assert server.api("broadcast", channels=channels, data={"n": 1}) == {"result": {}}
    pushes = [await client.push() for _ in channels]
    assert [push["channel"] for push in pushes] == channels
    assert [push["data"]["data"] for push in pushes] == [{"n": 1}] * len(channels)
    await client.quiet()


@pytest.mark.parametrize(
    ("failing", "error"),
    [("nope:a", NOT_FOUND), ("", BAD_REQUEST), ("\xe9", BAD_REQUEST)],
    ids=["unknown namespace", "empty", "not ASCII"],
)
async def test_broadcast_publishes_before_the_failing_channel_and_not_after(
    client: ProtocolClient, server: Server, unique: str, failing: str, error: Any
) -> None:
    before, after = f"{unique}a", f"{unique}b"
    await subscribe(client, before, after)
    assert server.api("broadcast", channels=[before, failing, after], data=1) == error
    assert await client.push() == {"channel": before, "data": {"data": 1}}
    await client.quiet()


def test_broadcast_takes_null_as_data(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    assert server.api("broadcast", channels=[channel], data=None) == {"result": {}}
    (publication,) = server.api("history", channel=channel)["result"]["publications"]
    assert publication["data"] is None
