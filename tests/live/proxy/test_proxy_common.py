"""What all endpoints are sent. docs/protocol.md, 7.1."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from typing import Any
from urllib.parse import quote

import pytest
import websockets

from tests.conftest import connection_token
from tests.live.configurations import Connect, Serve
from tests.live.proxy.application import ASKING, Application, ask, client_for, proxied
from tests.live.raw_http import open_exchange
from tests.server import Server, wait_until

QUERIES = {
    "": ("json", "json"),
    "encoding=binary": ("json", "binary"),
    "encoding=json": ("json", "json"),
    "format=protobuf": ("protobuf", "json"),
    "format=protobuf&encoding=binary": ("protobuf", "binary"),
    "protocol=protobuf&encoding=BINARY": ("protobuf", "json"),
}
"""Query of the handshake → protocol and encoding."""


@pytest.mark.parametrize(("query", "expected"), QUERIES.items())
@pytest.mark.parametrize("kind", ["connect", "rpc"])
async def test_body_names_format_and_encoding_of_the_connection(
    server: Server,
    connect: Connect,
    application: Application,
    unique: str,
    kind: str,
    query: str,
    expected: tuple[str, str],
) -> None:
    client = await client_for(connect, server, kind, query=query, format_name=expected[0])
    await ask(client, kind, unique)
    body = application.only_request().json
    assert (body["protocol"], body["encoding"]) == expected
    if expected[1] == "binary":
        assert json.loads(base64.b64decode(body["b64data"])) == {"text": unique}
    else:
        assert body["data"] == {"text": unique}


FIRST_FRAMES = {
    "sse": {"id": 1, "connect": {}},
    "uni_sse": {},
    "uni_websocket": {},
}
"""Transport → the first frame of its query."""


@pytest.mark.parametrize("transport", FIRST_FRAMES)
async def test_body_names_the_encoding_beside_a_first_frame(
    serve: Serve, application: Application, transport: str
) -> None:
    server = serve(**proxied(application), **dict.fromkeys(FIRST_FRAMES, True))
    frame = quote(json.dumps(FIRST_FRAMES[transport]))
    path = f"/connection/{transport}?cf_connect={frame}&encoding=binary"
    if transport == "uni_websocket":
        async with websockets.connect(f"ws://127.0.0.1:{server.port}{path}", proxy=None) as opened:
            await opened.recv()
    else:
        exchange = await open_exchange(server, "GET", path)
        await exchange.begin("GET")
        await asyncio.to_thread(wait_until, lambda: application.requests)
        await exchange.close()
    body = application.only_request().json
    assert (body["transport"], body["encoding"]) == (transport, "binary")


BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "subscribe": ({"channel": "C", "token": ""}, '"channel":"C"'),
    "publish": (
        {"channel": "C", "data": b'{"b": 1.0, "a": [ "x" ]}'},
        '"channel":"C","data":{"b":1.0,"a":["x"]}',
    ),
    "rpc": ({"method": "sum", "data": b"[1, 2]"}, '"method":"sum","data":[1,2]'),
}
"""Kind → params of its command, and the fields that the endpoint gets."""


@pytest.mark.parametrize("kind", BODIES)
async def test_body_says_who_asks_then_what(
    server: Server,
    connect: Connect,
    application: Application,
    format_name: str,
    unique: str,
    kind: str,
) -> None:
    params, fields = BODIES[kind]
    channel = {"subscribe": f"proxied:{unique}", "publish": f"proxied_publish:{unique}"}.get(kind)
    client = await connect(server, user=unique)
    await client.result(kind, params | ({"channel": channel} if channel else {}))
    request = application.only_request()
    assert (request.method, request.path) == ("POST", f"/{kind}")
    assert request.headers.get_all("Content-Type") == ["application/json"]
    assert request.body.decode() == (
        f'{{"client":"{client.client}","transport":"websocket","protocol":"{format_name}",'
        f'"encoding":"json","user":"{unique}",{fields.replace("C", channel or "", 1)}}}'
    )


async def test_meta_of_the_token_is_sent(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    token = connection_token(unique, meta={"plan": "gold"})
    server = serve(**proxied(application), proxy_include_connection_meta=True)
    await ask(await connect(server, token=token), "rpc", unique)
    assert application.only_request().json["meta"] == {"plan": "gold"}


FORWARDED = {
    "Origin": "https://example.org",
    "User-Agent": "browser/1.0",
    "Cookie": "session=1; other=2",
    "Authorization": "Bearer of-the-client",
    "X-Forwarded-For": "192.0.2.1, 192.0.2.2",
    "X-Real-Ip": "192.0.2.3",
    "X-Request-Id": "the request",
    "X-Custom": "value",
}


@pytest.mark.parametrize("kind", ASKING)
async def test_headers_of_the_handshake_are_passed_on(
    serve: Serve, connect: Connect, application: Application, unique: str, kind: str
) -> None:
    headers = {**FORWARDED, "X-Other": "stays here", "X-Lower": "x"}
    agent = headers.pop("User-Agent")
    client = await client_for(
        connect,
        serve(**proxied(application), allowed_origins=[FORWARDED["Origin"]]),
        kind,
        additional_headers=headers,
        user_agent_header=agent,
    )

    await ask(client, kind, unique)

    received = application.only_request().headers
    assert {name: received.get_all(name) for name in FORWARDED} == {
        name: [value] for name, value in FORWARDED.items()
    }
    assert "X-Other" not in received


CREDENTIALS = {"Cookie": "session=1", "Authorization": "Basic dTpw"}


@pytest.mark.parametrize("path", ["/connection/websocket", "/connection/sockjs/websocket"])
@pytest.mark.parametrize(
    ("origin", "counts"),
    [
        (None, True),
        ("http://127.0.0.1:{port}", True),
        ("http://127.0.0.1:1", False),
        ("https://elsewhere.example", False),
        ("null", False),
    ],
)
async def test_credentials_of_a_page_of_another_host_are_not_passed_on(
    server: Server, application: Application, path: str, origin: str | None, counts: bool
) -> None:
    headers = CREDENTIALS | ({"Origin": origin.format(port=server.port)} if origin else {})
    url = server.address.replace("http", "ws") + path.replace("sockjs/", "sockjs/000/s/")

    async with websockets.connect(url, additional_headers=headers) as page:
        frame = json.dumps({"id": 1, "method": 0})
        await page.send(json.dumps([frame]) if "sockjs" in path else frame)
        while "client" not in str(await page.recv()):
            pass

    received = application.only_request().headers
    assert {name: received[name] for name in CREDENTIALS} == (
        CREDENTIALS if counts else dict.fromkeys(CREDENTIALS)
    )


async def test_extra_header_matches_in_any_spelling_and_travels_in_the_canonical_one(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(server, additional_headers={"X-LOWER": "1", "x-custom": "2"})
    await ask(client, "rpc", unique)
    items = application.only_request().headers.items()
    assert {("X-Lower", "1"), ("X-Custom", "2")} <= set(items)


HANDSHAKE = (
    b"GET /connection/websocket HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nCookie: %b\r\n\r\n"
)


def connect_by_hand(server: Server, cookie: bytes) -> bytes:
    """The reply to a connect command after a handshake with a cookie no library would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(HANDSHAKE % cookie)
        replies = connection.makefile("rb")
        assert replies.readline().startswith(b"HTTP/1.1 101 ")
        while replies.readline() != b"\r\n":
            pass
        command = b'{"id":1}'
        # masked with zeros (RFC 6455, 5.2)
        connection.sendall(bytes((0x81, 0x80 | len(command))) + bytes(4) + command)
        return replies.readline()


def test_bytes_of_a_header_are_kept(serve: Serve, application: Application) -> None:
    cookie = "name=caf\xe9 \u2713".encode()
    connect_by_hand(serve(**proxied(application)), cookie)
    assert application.only_request().headers["Cookie"].encode("latin-1") == cookie


async def test_headers_that_are_not_there_are_not_sent(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(server, user_agent_header=None)
    await ask(client, "rpc", unique)
    received = {name.lower() for name in application.only_request().headers}
    assert not received & {name.lower() for name in FORWARDED}


async def test_headers_of_the_handshake_itself_are_never_passed_on(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    """Host and Content-Length are configured, and would break the request."""
    client = await connect(server, additional_headers={"Content-Length": "0"})
    assert (await ask(client, "rpc", unique))["result"] == {}
    request = application.only_request()
    assert request.headers.get_all("Host") == [f"127.0.0.1:{application.server_port}"]
    assert request.headers.get_all("Content-Length") == [str(len(request.body))]


@pytest.mark.parametrize("way", ["daphne", "uvicorn"])
async def test_header_that_came_twice_is_passed_on_as_one_list(
    serve: Serve, connect: Connect, application: Application, unique: str, way: str
) -> None:
    """What a proxy appended must not be lost behind what the client made up."""
    repeated = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-For", "192.0.2.2")]
    server = serve(server=way, **proxied(application))
    client = await connect(server, additional_headers=repeated)
    await ask(client, "rpc", unique)
    (received,) = application.only_request().headers.get_all("X-Forwarded-For", [])
    assert [part.strip() for part in received.split(",")] == ["192.0.2.1", "192.0.2.2"]
