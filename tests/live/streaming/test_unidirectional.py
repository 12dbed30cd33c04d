"""Unidirectional transports: the connect request goes up, and only pushes come down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.conftest import connection_token
from tests.live.api_methods import KEY
from tests.live.hooks_site import OPTIONS, Visitor, create_user, environment
from tests.live.streaming.client import JSON_BODY, ask
from tests.live.streaming.receivers import (
    EVERY_RECEIVER,
    RECEIVERS,
    UNI_SSE,
    UNI_WEBSOCKET,
    receiving,
)
from tests.server import Server

PAGE = "https://example.org"
ELSEWHERE = "https://elsewhere.example"
LOGINS = {**OPTIONS, "uni_sse": True, "uni_websocket": True}

each_receiver = pytest.mark.parametrize(
    ("path", "way"), EVERY_RECEIVER.values(), ids=EVERY_RECEIVER
)


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**RECEIVERS)


def token(user: str = "17", **claims: Any) -> dict[str, Any]:
    return {"token": connection_token(user, **claims)}


async def handshake_status(
    server: Server, query: str = "", headers: Mapping[str, str] | None = None
) -> int:
    """The status of a refused handshake."""
    url = f"ws://127.0.0.1:{server.port}{UNI_WEBSOCKET}{query}"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, proxy=None, additional_headers=headers or {}):
            pass
    return refused.value.response.status_code


# what comes


@each_receiver
@pytest.mark.parametrize("kind", ["daphne", "uvicorn", "granian"])
async def test_connect_push_and_publications_stand_alone(
    serve: Callable[..., Server], kind: str, path: str, way: str, unique: str
) -> None:
    server = serve(server=kind, **RECEIVERS)
    channel = f"ns:{unique}"
    async with receiving(server, path, way, token(channels=[channel])) as receiver:
        connected = (await receiver.message())["connect"]
        assert {name: connected[name] for name in ("subs", "ping")} == {
            "subs": {channel: {}},
            "ping": 25,
        }
        assert connected.keys() == {"client", "version", "subs", "ping", "session"}
        assert connected["session"] != connected["client"]

        for number in range(3):
            await asyncio.to_thread(server.publish, channel, number)

        for number in range(3):
            assert await receiver.text() == f'{{"channel":"{channel}","pub":{{"data":{number}}}}}'


@pytest.mark.parametrize("query", ["", "?", "?cf_connect=", "?other=1"])
async def test_request_may_follow_a_query_without_one(server: Server, query: str) -> None:
    url = f"ws://127.0.0.1:{server.port}{UNI_WEBSOCKET}{query}"
    async with connect(url, proxy=None) as socket:
        await socket.send(json.dumps(token()))
        assert "connect" in json.loads(await socket.recv())


@each_receiver
async def test_channels_of_the_request_are_recovered(
    server: Server, path: str, way: str, unique: str
) -> None:
    channel = f"recover:{unique}"
    wanted: dict[str, Any] = {"subs": {channel: {}, f"server_side:{unique}": {}}}
    async with receiving(server, path, way, {**token(), **wanted}) as receiver:
        subs = (await receiver.message())["connect"]["subs"]
    assert list(subs) == [channel]
    server.publish(channel, "missed")

    position = {"recover": True, "epoch": subs[channel]["epoch"], "offset": 0}
    again = {**token(), "subs": {channel: position}}
    async with receiving(server, path, way, again) as receiver:
        sub = (await receiver.message())["connect"]["subs"][channel]

    assert sub["recovered"] is True
    assert [publication["data"] for publication in sub["publications"]] == ["missed"]


@each_receiver
async def test_pings_come_and_need_no_answer(
    serve: Callable[..., Server], path: str, way: str
) -> None:
    server = serve(**RECEIVERS, ping_interval=1, pong_timeout=0.9)
    async with receiving(server, path, way, token()) as receiver:
        connected = (await receiver.message())["connect"]
        assert connected["ping"] == 1
        for _ in range(3):
            assert await receiver.text() == "{}"


@each_receiver
async def test_session_names_the_connection_for_the_api(
    server: Server, path: str, way: str, unique: str
) -> None:
    async with (
        receiving(server, path, way, token(unique)) as other,
        receiving(server, path, way, token(unique)) as receiver,
    ):
        await other.message()
        session = (await receiver.message())["connect"]["session"]
        command = {"user": unique, "session": session}

        body = json.dumps({**command, "expired": False, "expire_at": 0}).encode()
        assert (await api(server, "refresh", body)).status == 200
        assert "refresh" in await receiver.message()

        assert (await api(server, "disconnect", json.dumps(command).encode())).status == 200
        assert await receiver.ending() == (3503, "force disconnect")

        await asyncio.to_thread(server.api, "disconnect", user=unique)
        assert await other.ending() == (3503, "force disconnect")


async def api(server: Server, method: str, body: bytes) -> Any:
    return await ask(server, "POST", f"/api/{method}", body, {**JSON_BODY, **KEY})


@each_receiver
@pytest.mark.parametrize(
    ("request_", "end"),
    [
        (token(ttl=-60), (3005, "connection expired")),
        ({"token": "not.a.token"}, (3500, "invalid token")),
        (token(channels=["unknown:channel"]), (3004, "internal server error")),
        ({}, (3501, "bad request")),
        ({**token(), "subs": {"unknown:channel": {}}}, (3501, "bad request")),
    ],
    ids=["expired token", "no token", "wrong channel", "nobody", "unknown namespace"],
)
async def test_refused_connect_ends_the_connection(
    server: Server, path: str, way: str, request_: dict[str, Any], end: tuple[int, str]
) -> None:
    async with receiving(server, path, way, request_) as receiver:
        assert await receiver.ending() == end


# what goes up


async def test_input_of_a_websocket_is_ignored(server: Server, unique: str) -> None:
    channel = f"ns:{unique}"
    url = f"ws://127.0.0.1:{server.port}{UNI_WEBSOCKET}"
    async with connect(url, proxy=None) as socket:
        await socket.send(json.dumps(token(channels=[channel])))
        await socket.recv()
        for late in ("hello", "{}", b"\xff", json.dumps(token("18"))):
            await socket.send(late)
        await asyncio.wait_for(await socket.ping(), 20)

        server.publish(channel, 1)

        assert json.loads(await socket.recv())["pub"] == {"data": 1}


@pytest.mark.parametrize("message", ["", "hello", "[]", '{"token":5}', b"\xff"])
async def test_message_that_is_no_connect_request_ends_a_websocket(
    server: Server, message: str | bytes
) -> None:
    url = f"ws://127.0.0.1:{server.port}{UNI_WEBSOCKET}"
    async with connect(url, proxy=None) as socket:
        await socket.send(message)
        assert json.loads(await socket.recv()) == {
            "disconnect": {"code": 3501, "reason": "bad request"}
        }
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert (socket.close_code, socket.close_reason) == (3501, "bad request")


BAD = ["hello", "[]", '{"token":5}', '{"subs":[]}', "{}{}", '{"subs":{"a":{"delta":"x"}}}']


@pytest.mark.parametrize("text", BAD)
async def test_request_that_is_no_connect_request_is_refused(
    serve: Callable[..., Server], text: str
) -> None:
    server = serve(server="uvicorn", **RECEIVERS)  # daphne knows no other status for a handshake
    assert await handshake_status(server, f"?cf_connect={quote(text)}") == 400


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_plain_request_to_the_websocket_is_refused(server: Server, method: str) -> None:
    answer = await ask(server, method, UNI_WEBSOCKET)
    assert (answer.status, answer.body) == (400, b"Bad Request\n")
    assert answer.headers["sec-websocket-version"] == "13"


async def test_socket_that_is_not_on_is_not_found(serve: Callable[..., Server]) -> None:
    assert await handshake_status(serve(server="uvicorn")) == 404


@pytest.mark.parametrize(("path", "way"), [(UNI_SSE, "GET"), (UNI_WEBSOCKET, "query")])
async def test_login_session_counts_for_pages_of_the_same_host_only(
    serve: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
    path: str,
    way: str,
    unique: str,
) -> None:
    """Without `allowed_origins`."""
    server = serve(environment=environment(tmp_path_factory), **LOGINS)
    username, pk = create_user(server)
    headers = Visitor(server, username).headers
    channel = f"{unique}#{pk}"

    async with receiving(server, path, way, {"subs": {channel: {}}}, headers) as receiver:
        assert list((await receiver.message())["connect"]["subs"]) == [channel]

    foreign = {**headers, "Origin": ELSEWHERE}
    if path == UNI_WEBSOCKET:
        assert await handshake_status(server, headers=foreign) == 403
    else:
        assert (await ask(server, "GET", path, headers=foreign)).status == 403
