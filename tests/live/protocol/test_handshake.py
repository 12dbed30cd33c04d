"""Before the first command: path, origin, format, subprotocol, and the time to connect.

docs/protocol.md, 2.1, 2.10, 10.7 and 14.4.
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

GUARDED: Options = {
    "client_stale_close_delay": 1,
    "allowed_origins": [
        "https://example.org",
        "http://*.example.org",
        "http://host?:80[0-9]0",
        "{ftp,file}://files",
    ],
}


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


# origin

ACCEPTED_ORIGINS = [
    "https://example.org",
    "HTTPS://Example.ORG",
    "http://a.example.org",
    "http://a.b.example.org",
    "http://host1:8000",
    "http://hostx:8090",
    "ftp://files",
    "file://files",
]
REFUSED_ORIGINS = [
    "http://example.org",
    "https://a.example.org",
    "https://example.org:8443",
    "https://example.org.evil.net",
    "https://evil.net/https://example.org",
    "http://host:8000",
    "http://host12:8000",
    "http://host1:8001",
    "http://files",
    "null",
]


@pytest.mark.parametrize("origin", ACCEPTED_ORIGINS)
async def test_origin_that_matches_a_pattern_is_accepted(
    serve: Serve, connect: Connect, origin: str
) -> None:
    client = await connect(serve(**GUARDED), additional_headers={"Origin": origin})
    await client.result("ping")


@pytest.mark.parametrize("origin", REFUSED_ORIGINS)
async def test_origin_that_matches_no_pattern_is_refused_with_403(
    serve: Serve, connect: Connect, origin: str
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(serve(**GUARDED), additional_headers={"Origin": origin})
    assert refused.value.response.status_code == 403


async def test_request_without_origin_is_accepted(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**GUARDED))
    await client.result("ping")


async def test_every_origin_is_accepted_when_the_option_is_not_set(
    serve: Serve, connect: Connect
) -> None:
    client = await connect(serve(**MAIN), additional_headers={"Origin": "https://anything"})
    await client.result("ping")


async def test_empty_list_of_origins_accepts_only_requests_without_origin(
    serve: Serve, connect: Connect
) -> None:
    server = serve(allowed_origins=[])
    client = await connect(server)
    await client.result("ping")
    with pytest.raises(InvalidStatus) as refused:
        await connect(server, additional_headers={"Origin": server.address})
    assert refused.value.response.status_code == 403


# format and subprotocol


@pytest.mark.parametrize(
    ("query", "expected"),
    {
        "": "json",
        "format=json": "json",
        "format=protobuf": "protobuf",
        "protocol=protobuf": "protobuf",
        "format=json&protocol=protobuf": "protobuf",
        "encoding=binary&format=protobuf": "protobuf",
        "encoding=binary": "json",
        "format=PROTOBUF": "json",
        "format=protobuf2": "json",
        "Format=protobuf": "json",
        "format=": "json",
    }.items(),
)
async def test_query_selects_the_format(
    serve: Serve, connect: Connect, query: str, expected: str
) -> None:
    client = await connect(serve(**MAIN), query=query, format_name=expected)
    assert isinstance(client.frames[0], str if expected == "json" else bytes)


@pytest.mark.parametrize(
    ("offered", "query", "chosen", "expected"),
    [
        (["centrifuge-protobuf"], "", "centrifuge-protobuf", "protobuf"),
        (["centrifuge-protobuf"], "format=protobuf", "centrifuge-protobuf", "protobuf"),
        (["centrifuge-json"], "", "centrifuge-json", "json"),
        (["other", "centrifuge-protobuf"], "", "centrifuge-protobuf", "protobuf"),
        (["other"], "", None, "json"),
        (["other"], "format=protobuf", None, "protobuf"),
    ],
)
async def test_offered_subprotocol_of_the_client_libraries_is_echoed_and_selects_the_format(
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


async def test_client_that_does_not_connect_in_time_is_stale(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**GUARDED), connected=False)
    assert await client.closed() == STALE


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
