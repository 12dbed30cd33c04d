"""rpc and send: the site has methods, and hears what clients say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.configurations import Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server

FAILURE = {"code": 100, "message": "internal server error"}


@pytest.fixture(scope="module")
def server(site: Serve) -> Server:
    """The site whose methods do what they are called."""
    return site("strange")


ANSWERS: list[tuple[dict[str, Any], Any]] = [
    (
        {"method": "echo", "data": ["é", None]},
        {"data": ["é", None], "user": "17", "method": "echo"},
    ),
    ({"method": "echo_async", "data": 1}, {"data": 1}),
    ({"method": "echo_async"}, {"data": None}),
    ({"method": "decorated", "data": 1}, "decorated"),
    ({"method": "null"}, None),
]


@pytest.mark.parametrize(("call", "answer"), ANSWERS)
async def test_function_or_coroutine_answers(
    client: ProtocolClient, format_name: str, call: dict[str, Any], answer: Any
) -> None:
    assert await client.result("rpc", call) == {"data": answer}
    assert await client.result("rpc", {"method": "nothing"}) == {}


@pytest.mark.parametrize("code", [1000, 4711, 2**32 - 1])
async def test_method_fails_with_a_code_of_its_own(
    client: ProtocolClient, code: int, format_name: str
) -> None:
    error = await client.error("rpc", {"method": "error", "data": code})
    assert error == {"code": code, "message": "as you wish"}


@pytest.mark.parametrize("code", [-1, 2**32, "1000", 1.5])
async def test_code_that_cannot_be_sent_is_an_internal_error(
    client: ProtocolClient, code: Any, format_name: str
) -> None:
    assert await client.error("rpc", {"method": "error", "data": code}) == FAILURE


@pytest.mark.parametrize("method", ["failure", "exit", "object"])
async def test_broken_method_is_an_internal_error_and_the_connection_stays(
    client: ProtocolClient, method: str, format_name: str
) -> None:
    assert await client.error("rpc", {"method": method}) == FAILURE
    assert await client.result("rpc", {"method": "echo_async", "data": 1}) == {"data": {"data": 1}}


async def test_method_disconnects_with_its_code(client: ProtocolClient, format_name: str) -> None:
    await client.send("rpc", {"method": "disconnect"})
    assert await client.closed() == (4040, '{"reason":"as you wish","reconnect":true}')


@pytest.mark.parametrize("method", ["nope", ""])
async def test_method_that_is_not_registered_is_error_104(
    client: ProtocolClient, method: str, format_name: str
) -> None:
    error = await client.error("rpc", {"method": method, "data": 1})
    assert error == {"code": 104, "message": "method not found"}


async def test_method_is_error_108_where_the_site_has_none(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve())
    error = await client.error("rpc", {"method": "echo", "data": 1})
    assert error == {"code": 108, "message": "not available"}


async def test_data_that_are_no_json_are_a_bad_request(server: Server, connect: Connect) -> None:
    client = await connect(server, format_name="protobuf")
    error = await client.error("rpc", {"method": "echo", "data": b"\xff"})
    assert error == {"code": 107, "message": "bad request"}


# send


async def test_message_is_handed_over_and_has_no_reply(
    server: Server, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": f"seen#{unique}"})
    command = await client.send("send", {"data": {"n": 1}})
    assert (await client.publication())["data"] == {"n": 1}
    await client.quiet()
    assert not [reply for reply in client.received if reply.get("id") == command]


@pytest.mark.parametrize("data", ["failure", "error"])
async def test_message_that_fails_has_no_reply_either(
    server: Server, connect: Connect, unique: str, data: str
) -> None:
    client = await connect(server, user=unique)
    command = await client.send("send", {"data": data})
    await client.quiet()
    assert not [reply for reply in client.received if reply.get("id") == command]


async def test_message_may_disconnect(client: ProtocolClient, format_name: str) -> None:
    await client.send("send", {"data": "disconnect"})
    assert await client.closed() == (4050, '{"reason":"as you wish","reconnect":false}')
