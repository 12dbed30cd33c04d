"""What daphne takes from a request before the application runs: headers, paths, bodies."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from websockets.exceptions import InvalidStatus

from realtime.auth import issue
from realtime.config.reader import load
from tests.live.api_client import AUTHORIZED, line
from tests.live.raw_http import open_exchange
from tests.protocol_client import open_client
from tests.server import SECRET, Server

ROOT_PATH = "Daphne-Root-Path"


# the path at which the site is mounted


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve()


@pytest.mark.parametrize("trusted", [False, True])
async def test_reverse_proxy_names_the_path_where_the_option_says_so(
    serve: Callable[..., Server], trusted: bool
) -> None:
    server = serve(proxy_sets_root_path=trusted)
    exchange = await open_exchange(
        server, "POST", "/static/api", line("channels"), {**AUTHORIZED, ROOT_PATH: "/static"}
    )
    await exchange.begin()
    await exchange.close()
    assert exchange.status == (200 if trusted else 404)
    opening = open_client(
        server.socket.replace("/connection", "/static/connection"),
        token=issue.connection_token(load({"token_hmac_secret_key": SECRET}), "17"),
        additional_headers={ROOT_PATH: "/static"},
    )
    with nullcontext() if trusted else pytest.raises(InvalidStatus):
        async with opening as client:
            await client.quiet()


@pytest.mark.parametrize("trusted", [False, True])
async def test_redirects_hold_no_part_of_a_header(
    serve: Callable[..., Server], trusted: bool
) -> None:
    server = serve(proxy_sets_root_path=trusted)

    exchange = await open_exchange(
        server,
        "GET",
        "//evil.example/connection/sockjs" if trusted else "/connection/sockjs",
        headers={ROOT_PATH: "//evil.example"},
    )
    await exchange.begin()
    await exchange.close()

    assert (exchange.status, exchange.headers["location"]) == (301, "./sockjs/")


# bodies

HUGE = 500_000_000
API_LIMIT = 2_621_440
"""Django's default of DATA_UPLOAD_MAX_MEMORY_SIZE."""

SEND = "/connection/sockjs/0/session/xhr_send"


@pytest.mark.parametrize(
    "length",
    [{"Content-Length": str(HUGE)}, {"Transfer-Encoding": "chunked"}],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api", {}, 401),
        ("/a%70i?api_key=wrong", {"Authorization": "apikey wrong"}, 401),
        ("/connection/websocket", {"Upgrade": "websocket", "Connection": "Upgrade"}, 400),
    ],
    ids=["no key", "wrong key", "handshake"],
)
async def test_request_is_refused_by_its_head_before_the_body_comes(
    server: Server, path: str, headers: dict[str, str], length: dict[str, str], status: int
) -> None:
    asking = {**headers, **length, "Expect": "100-continue"}
    exchange = await open_exchange(server, "POST", path, headers=asking)
    await exchange.begin()
    body = await exchange.rest()
    await exchange.close()
    assert exchange.status == status
    assert exchange.headers["connection"] == "close"
    assert len(body) == int(exchange.headers["content-length"])


@pytest.mark.parametrize(
    ("path", "headers"), [("/api", AUTHORIZED), (SEND, {})], ids=["api", "sockjs"]
)
async def test_announced_body_above_the_limit_is_refused_before_it_comes(
    server: Server, path: str, headers: dict[str, str]
) -> None:
    announced = {**headers, "Content-Length": str(API_LIMIT + 1)}
    exchange = await open_exchange(server, "POST", path, headers=announced)
    await exchange.begin()
    await exchange.close()
    assert exchange.status == 413


async def test_body_above_the_limit_is_refused_as_it_comes(server: Server) -> None:
    headers = {**AUTHORIZED, "Transfer-Encoding": "chunked"}
    chunked = await open_exchange(server, "POST", "/api", headers=headers)
    await chunked.write(b"%x\r\n%b\r\n" % (API_LIMIT, b" " * API_LIMIT))
    await chunked.write(b"1\r\n \r\n")
    whole = await open_exchange(server, "POST", "/api", bytes(4 * API_LIMIT), AUTHORIZED)
    for exchange in (chunked, whole):
        await exchange.begin()
        assert exchange.status == 413
        assert await exchange.is_over()
        await exchange.close()


async def test_bodies_of_the_site_have_a_limit_of_their_own(serve: Callable[..., Server]) -> None:
    server = serve(site_body_max_size=200_000)
    call = json.dumps({"function": "info", "arguments": [], "padding": ""}).encode()
    statuses = []

    for size in (200_000, 200_001):
        exchange = await open_exchange(server, "POST", "/call/sync-view", call.ljust(size))
        await exchange.begin()
        await exchange.close()
        statuses.append(exchange.status)

    assert statuses == [200, 413]


def test_http_2_is_not_offered(serve: Callable[..., Server]) -> None:
    """Over HTTP/2 daphne takes in bodies whatever the head says, and serves no WebSockets."""
    server = serve(server="daphne-tls")
    tls = ssl._create_unverified_context()
    tls.set_alpn_protocols(["h2", "http/1.1"])

    with (
        socket.create_connection(("127.0.0.1", server.port), 10) as connection,
        tls.wrap_socket(connection) as secured,
    ):
        assert secured.selected_alpn_protocol() == "http/1.1"
