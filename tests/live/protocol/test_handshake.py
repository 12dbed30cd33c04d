"""Before the first command: path, origin, format, subprotocol, and the time to connect.

docs/protocol.md, 2.1, 2.10, 10.7 and 14.3.
"""

from __future__ import annotations

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.conftest import connection_token
from tests.live.configurations import (
    MAIN,
    STALE,
    TOKEN_EXPIRED,
    Connect,
    Options,
    Serve,
)
from tests.protocol_client import open_client

GUARDED: Options = {"client_stale_close_delay": 1, "allowed_origins": ["http://*.example.org"]}


# path


def test_plain_get_is_answered_with_400(serve: Serve) -> None:
    response = httpx.get(serve(**MAIN).socket.replace("ws:", "http:"), timeout=20)
    assert (response.status_code, response.text) == (400, "Bad Request\n")
    assert response.headers["sec-websocket-version"] == "13"


@pytest.mark.parametrize("suffix", ["/", "/x", "x"])
async def test_handshake_on_another_path_is_refused(serve: Serve, suffix: str) -> None:
    url = serve(**MAIN).socket + suffix
    with pytest.raises(InvalidStatus) as refused:
        async with open_client(url, connected=False):
            pass
    assert refused.value.response.status_code in (403, 404)


# origin: patterns are those of tests/unit/config/test_origins.py


async def test_origin_decides_over_the_handshake(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**GUARDED), additional_headers={"Origin": "http://a.example.org"})
    await client.result("ping")
    with pytest.raises(InvalidStatus) as refused:
        await connect(serve(**GUARDED), additional_headers={"Origin": "http://example.org"})
    assert refused.value.response.status_code == 403


# format and subprotocol: all queries are in tests/unit/protocol/test_negotiation.py


@pytest.mark.parametrize(
    ("offered", "query", "chosen", "expected"),
    [
        (["other"], "", None, "json"),
        (["other"], "format=protobuf", None, "protobuf"),
        (["other", "centrifuge-protobuf"], "", "centrifuge-protobuf", "protobuf"),
    ],
)
async def test_query_and_offered_subprotocol_select_the_format(
    serve: Serve,
    connect: Connect,
    offered: list[str],
    query: str,
    chosen: str | None,
    expected: str,
) -> None:
    client = await connect(serve(**MAIN), subprotocols=offered, query=query, format_name=expected)
    assert client.socket.subprotocol == chosen
    assert isinstance(client.frames[0], str if expected == "json" else bytes)


# until the client has connected


async def test_failed_connect_does_not_stop_the_stale_timer(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**GUARDED), connected=False)
    token = connection_token("17", ttl=-10)
    assert await client.error("connect", {"token": token}) == TOKEN_EXPIRED
    assert await client.closed() == STALE


async def test_failed_connect_may_be_repeated(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    expired = connection_token("17", ttl=-10)
    for _ in range(2):
        assert await client.error("connect", {"token": expired}) == TOKEN_EXPIRED
    assert "client" in await client.result("connect", {"token": connection_token("17")})
    assert await client.result("subscribe", {"channel": unique}) == {}


@pytest.mark.parametrize("code", [1000, 3500, 4999])
async def test_close_by_the_client_is_answered_with_its_code_and_no_reason(
    serve: Serve, connect: Connect, code: int
) -> None:
    client = await connect(serve(**MAIN))
    await client.socket.close(code, "I am going")
    assert await client.closed() == (code, "")
