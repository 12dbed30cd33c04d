"""publish: the order of checks, what subscribers get, how payloads are spelt.

docs/protocol.md, 2.11, 3.15 and 4.1.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.conftest import connection_token, subscription_token
from tests.live.configurations import (
    BAD_REQUEST_ERROR,
    MAIN,
    OFFSET,
    Connect,
    Serve,
    info_of,
)
from tests.protocol_client import ProtocolClient
from tests.server import API_KEY, Server


@pytest.mark.parametrize(
    "data", [b"x", b"{", b"[1,]", b"{} {}", b"\xff", b'"\xff"', b" ", b"NaN", b"\x00"], ids=repr
)
async def test_data_that_are_not_json_in_protobuf_are_error_107(
    serve: Serve, connect: Connect, unique: str, data: bytes
) -> None:
    channel = f"open:{unique}"
    client = await connect(serve(**MAIN), format_name="protobuf")
    await client.result("subscribe", {"channel": channel})
    error = await client.error("publish", {"channel": channel, "data": data})
    assert error == BAD_REQUEST_ERROR
    await client.quiet()


async def test_json_that_is_not_utf8_reaches_nobody(
    serve: Serve, connect: Connect, unique: str
) -> None:
    server, channel = serve(**MAIN), f"open:{unique}"
    subscriber, publisher = await connect(server), await connect(server)
    await subscriber.result("subscribe", {"channel": channel})
    await publisher.send_raw(
        b'{"id":5,"method":3,"params":{"channel":"%b","data":"\xff"}}' % channel.encode()
    )
    assert await publisher.reply(5) == {"id": 5, "error": BAD_REQUEST_ERROR}
    await subscriber.quiet()


# delivery


async def test_publisher_receives_its_own_publication_before_the_reply(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"open:{unique}"
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": channel})
    await client.result("publish", {"channel": channel, "data": 1})
    push, reply = client.received[-2:]
    assert push["result"]["data"]["data"] == 1
    assert reply["result"] == {}


async def test_info_of_the_publisher_holds_chan_info_only_when_subscribed(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    server, channel = serve(**MAIN), f"$open:{unique}"
    watcher = await connect(server, user="18")
    token = subscription_token(watcher.client, channel)
    await watcher.result("subscribe", {"channel": channel, "token": token})
    client = await connect(server, token=connection_token("17", info={"name": "A"}))

    await client.result("publish", {"channel": channel, "data": 1})
    token = subscription_token(client.client, channel, info=["guest"])
    await client.result("subscribe", {"channel": channel, "token": token})
    await client.result("publish", {"channel": channel, "data": 2})

    info = info_of(client) | {"conn_info": {"name": "A"}}
    assert await watcher.publication() == {"data": 1, "info": info}
    assert await watcher.publication() == {"data": 2, "info": info | {"chan_info": ["guest"]}}


@pytest.mark.parametrize("namespace", ["kept", "recover"])
@pytest.mark.parametrize(
    ("options", "field"), [(MAIN, "seq"), (OFFSET, "offset")], ids=["seq", "offset"]
)
async def test_publication_carries_its_position_wherever_history_is_kept(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    options: dict[str, Any],
    field: str,
    namespace: str,
) -> None:
    server, channel = serve(**options), f"{namespace}:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})
    server.publish(channel, "a")
    await client.result("publish", {"channel": channel, "data": "b"})
    assert await client.publication() == {field: 1, "data": "a"}
    assert await client.publication() == {field: 2, "data": "b", "info": info_of(client)}


# how payloads are spelt

SPELLINGS = {
    "white space": (' { "a" : [ 1 ,\t2 ] , "b" : " x " } ', '{"a":[1,2],"b":" x "}'),
    "line breaks": ('{"a":\r\n1\n}', '{"a":1}'),
    "numbers": ("[1.0,1E5,-0,12345678901234567890]", "[1.0,1E5,-0,12345678901234567890]"),
    "duplicate keys in order": ('{"b":1,"a":2,"b":3}', '{"b":1,"a":2,"b":3}'),
    "escapes stay": (r'"\u00e9\/\n"', r'"\u00e9\/\n"'),
    "raw UTF-8 stays": ('"é日😀"', '"é日😀"'),
    "angle brackets": ('{"<k>":"a&b"}', r'{"\u003ck\u003e":"a\u0026b"}'),
    "line separators": ('"\u2028\u2029"', r'"\u2028\u2029"'),
    "null": ("null", "null"),
}


async def publish_by_client(client: ProtocolClient, channel: str, data: str) -> None:
    await client.result("publish", {"channel": channel, "data": data.encode()})


async def publish_by_api(server: Server, channel: str, data: str) -> None:
    body = f'{{"method":"publish","params":{{"channel":"{channel}","data":{data}}}}}'
    async with httpx.AsyncClient(timeout=20) as http:
        headers = {"Authorization": f"apikey {API_KEY}"}
        response = await http.post(f"{server.address}/api", content=body, headers=headers)
    assert response.json() == {"result": {}}


@pytest.mark.parametrize("sender", ["json", "protobuf", "api"])
@pytest.mark.parametrize(("data", "spelt"), SPELLINGS.values(), ids=SPELLINGS.keys())
async def test_json_recipient_gets_the_payload_compact_and_escaped_but_never_rewritten(
    serve: Serve, connect: Connect, unique: str, data: str, spelt: str, sender: str
) -> None:
    server, channel = serve(**MAIN), f"open:{unique}"
    recipient = await connect(server)
    await recipient.result("subscribe", {"channel": channel})

    if sender == "api":
        await publish_by_api(server, channel, data)
        info = ""
    else:
        publisher = await connect(server, user="18", format_name=sender)
        await publish_by_client(publisher, channel, data)
        info = f',"info":{{"user":"18","client":"{publisher.client}"}}'

    await recipient.push()
    push = f'{{"result":{{"channel":"{channel}","data":{{"data":{spelt}{info}}}}}}}\n'
    assert recipient.frames[-1] == push


async def test_protobuf_recipient_gets_the_original_bytes_of_a_protobuf_publisher(
    serve: Serve, connect: Connect, unique: str
) -> None:
    channel = f"open:{unique}"
    client = await connect(serve(**MAIN), format_name="protobuf")
    await client.result("subscribe", {"channel": channel})
    for data, _ in SPELLINGS.values():
        await publish_by_client(client, channel, data)
        await client.push()
        told = client.frames[-2:]
        assert any(data.encode() in frame for frame in told if isinstance(frame, bytes))


@pytest.mark.parametrize("sender", ["json", "api"])
async def test_protobuf_recipient_gets_the_text_between_the_colon_and_the_comma(
    serve: Serve, connect: Connect, unique: str, sender: str
) -> None:
    server, channel = serve(**MAIN), f"open:{unique}"
    recipient = await connect(server, format_name="protobuf")
    await recipient.result("subscribe", {"channel": channel})
    data = '{ "<b>" : [ 1.0,\n2 ],"b":"\u2028" }'
    if sender == "api":
        await publish_by_api(server, channel, data)
    else:
        await publish_by_client(await connect(server, format_name="json"), channel, data)
    await recipient.push()
    assert data.encode() in recipient.frames[-1]
