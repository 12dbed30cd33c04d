"""What endpoints are asked: body, and headers. docs/protocol.md, 7."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from realtime.errors import InternalError
from realtime.node.hooks import Handshake
from realtime.payload import check
from tests.unit.proxy.endpoint_site import DATA, NO_JSON, PROTOBUF, Site


@pytest.mark.parametrize(
    ("kind", "arguments", "fields"),
    [
        ("connect", {}, ',"data":{"a":1}'),
        ("connect", {"data": b""}, ""),
        ("connect", {"data": b"null"}, ',"data":null'),
        ("connect", {"name": "js", "version": "1"}, ',"data":{"a":1},"name":"js","version":"1"'),
        ("refresh", {}, ',"user":"17"'),
        ("subscribe", {}, ',"user":"17","channel":"news"'),
        ("subscribe", {"token": "T"}, ',"user":"17","channel":"news","token":"T"'),
        ("publish", {}, ',"user":"17","channel":"news","data":{"a":1}'),
        ("rpc", {}, ',"user":"17","method":"m","data":{"a":1}'),
        ("rpc", {"user": ""}, ',"user":"","method":"m","data":{"a":1}'),
        ("rpc", {"data": b""}, ',"user":"17","method":"m"'),
        ("rpc", {"method": ""}, ',"user":"17","data":{"a":1}'),
        ("rpc", {"method": "", "data": b"null"}, ',"user":"17","data":null'),
        (
            "rpc",
            {"method": "", "data": b'{"b": 1.0, "a": 12345678901234567890123, "b": 1E5}'},
            ',"user":"17","data":{"b":1.0,"a":12345678901234567890123,"b":1E5}',
        ),
    ],
)
async def test_body_says_who_asks_then_what_in_order(
    site: Site, kind: str, arguments: dict[str, Any], fields: str
) -> None:
    await site.ask(kind, **arguments)
    [(_, body)] = site.requests
    common = '{"client":"C","transport":"websocket","protocol":"json","encoding":"json"'
    assert body.decode() == common + fields + "}"


@pytest.mark.parametrize("kind", ["connect", "publish", "rpc"])
@pytest.mark.parametrize("data", [DATA, NO_JSON], ids=["JSON", "bytes"])
async def test_data_of_binary_encoding_travel_as_base64(site: Site, kind: str, data: bytes) -> None:
    await site.ask(kind, PROTOBUF, data=data)
    body = json.loads(site.requests[0][1])
    assert (body["protocol"], body["encoding"]) == ("protobuf", "binary")
    assert list(body)[-1] == "b64data"
    assert base64.b64decode(body["b64data"]) == data
    assert "data" not in body


@pytest.mark.parametrize("kind", ["connect", "rpc"])
async def test_data_that_are_not_json_fail_without_asking(site: Site, kind: str) -> None:
    with pytest.raises(InternalError):
        await site.ask(kind, data=NO_JSON)
    assert site.requests == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, set()),
        ({"proxy_include_connection_meta": True}, {"rpc", "publish"}),
        ({"proxy_rpc_include_connection_meta": True}, {"rpc"}),
    ],
)
async def test_meta_of_the_connection_is_sent_where_an_option_says_so(
    site: Site, options: dict[str, bool], told: set[str]
) -> None:
    site.options |= options
    for kind in ("rpc", "publish"):
        await site.ask(kind, meta=check(b'{"plan": "gold"}'))
    meta = [json.loads(body).get("meta") for _, body in site.requests]
    assert meta == [{"plan": "gold"} if kind in told else None for kind in ("rpc", "publish")]


async def test_endpoint_with_headers_of_its_own_gets_no_others(site: Site) -> None:
    sent = {"cookie": "a=1", "x-connect": "c", "x-rpc": "r", "x-custom": "all", "host": "h"}
    site.options |= {
        "proxy_extra_http_headers": ["X-CUSTOM", "Host", "Content-Length"],
        "proxy_connect_http_headers": ["x-connect", "Host"],
        "proxy_rpc_http_headers": ["X-Rpc"],
    }
    for kind in ("connect", "rpc", "publish"):
        await site.ask(kind, Handshake(sent | {"content-length": "0"}))
    assert [set(headers) for headers, _ in site.requests] == [
        {"x-connect"},
        {"x-rpc"},
        {"cookie", "x-custom"},
    ]
