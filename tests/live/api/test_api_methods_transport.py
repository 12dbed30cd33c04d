"""`POST /api/<method>`: key, statuses and shapes of bodies, through both ways to serve it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.live.api_client import BOTH, OPTIONS, post, start
from tests.live.api_methods import BAD_REQUEST, TRANSPORT, send
from tests.live.configurations import Serve
from tests.server import API_KEY, Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return start(serve, request.param, **OPTIONS)


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"X-API-Key": API_KEY}, "", 200),
        ({"Authorization": f"apikey {API_KEY}"}, "", 200),
        ({}, f"?api_key={API_KEY}", 200),
        ({"X-API-Key": "wrong"}, f"?api_key={API_KEY}", 200),
        ({"Authorization": "apikey wrong"}, f"?api_key={API_KEY}", 200),
        ({"X-API-Key": "wrong", "Authorization": f"apikey {API_KEY}"}, "", 401),
        ({"X-API-Key": "", "Authorization": f"apikey {API_KEY}"}, "", 401),
        ({"X-API-Key": "wrong"}, "", 401),
        ({"X-API-Key": "\xe9"}, "", 401),
        ({"Authorization": "apikey wrong"}, "", 401),
        ({}, "?api_key=wrong", 401),
        ({}, "", 401),
    ],
)
def test_key_is_taken_from_its_header_first(
    server: Server, headers: Mapping[str, str], query: str, status: int
) -> None:
    answer = send(server, f"info{query}", b"{}", headers)
    assert answer.status == status
    assert status == 200 or answer.body == b""


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_http_methods_get_405_before_the_key(server: Server, method: str) -> None:
    answer = post(server, b"{}", method=method, path="/api/info", headers={})
    assert (answer.status, answer.body) == (405, b"")


@pytest.mark.parametrize(
    "name", ["nope", "info/", "Info", "", "connections", "publish/x", "map_merge", "%69nfo%2f"]
)
def test_other_paths_are_left_to_the_site(server: Server, name: str) -> None:
    assert send(server, name, b"{}").status == 404


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b" ", b"x", b"[]", b"1", b'"a"', b"{}{}", b"{} x", b'{"channel":1}'),
        *(b'{"channel":"a","data":1', b'{"channel":["a"],"data":1}', b'{"tags":{"a":1}}'),
        *(b'{"tags":[]}', b'{"skip_history":"yes"}', b'{"version":-1}', b'{"channel":"\xff"}'),
        b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:25]),
)
def test_body_of_another_shape_gets_400(server: Server, body: bytes) -> None:
    answer = send(server, "publish", body)
    assert (answer.status, answer.body) == (400, b"Bad Request\n")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("info", b""),
        ("disconnect", b'{"user":17}'),
        ("disconnect", b'{"user":"17","disconnect":{"code":-1}}'),
        ("disconnect", b'{"user":"17","whitelist":"C"}'),
        ("history", b'{"channel":"kept:a","limit":2147483648}'),
        ("history", b'{"channel":"kept:a","limit":1.5}'),
        ("history", b'{"channel":"kept:a","since":5}'),
        ("history", b'{"channel":"kept:a","since":{"offset":-1}}'),
        ("broadcast", b'{"channels":"a","data":1}'),
        ("batch", b'{"commands":{}}'),
        ("batch", b'{"commands":[1]}'),
        ("batch", b'{"commands":[{"publish":{"channel":1}}]}'),
    ],
)
def test_wrong_types_get_400(server: Server, name: str, body: bytes) -> None:
    assert send(server, name, body).status == 400


@pytest.mark.parametrize("body", [b"null", b" null\n", b"{}", b'{"nope":1}', b'{"channel":null}'])
def test_null_and_unknown_keys_are_as_nothing(server: Server, body: bytes) -> None:
    assert json.loads(send(server, "publish", body).body) == BAD_REQUEST


def test_keys_are_taken_in_any_letter_case(server: Server, unique: str) -> None:
    body = json.dumps({"CHANNEL": f"kept:{unique}", "Data": 1}).encode()
    assert json.loads(send(server, "publish", body).body)["result"]["offset"] == 1


@pytest.mark.parametrize(
    ("name", "params", "status", "code"),
    [
        ("publish", {"channel": "nope:a", "data": 1}, 404, 102),
        ("rpc", {"method": "m"}, 404, 104),
        ("publish", {"channel": "", "data": 1}, 400, 107),
        ("history", {"channel": "off:a"}, 400, 108),
        ("history", {"channel": "kept:a", "since": {"offset": 0, "epoch": "x"}}, 416, 112),
    ],
)
def test_error_mode_transport_answers_with_a_status(
    server: Server, name: str, params: dict[str, Any], status: int, code: int
) -> None:
    answer = send(server, name, json.dumps(params).encode(), TRANSPORT)
    assert answer.status == status
    assert json.loads(answer.body)["code"] == code


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("batch", {"commands": [{"publish": {}}]}),
        ("broadcast", {"channels": ["nope:a"], "data": 1}),
    ],
)
def test_error_mode_transport_leaves_batch_and_broadcast_alone(
    server: Server, name: str, params: dict[str, Any]
) -> None:
    assert send(server, name, json.dumps(params).encode(), TRANSPORT).status == 200


def test_answers_are_escaped_and_payloads_compact(server: Server, unique: str) -> None:
    channel = f"kept:{unique}<&>"
    body = b'{"channel":"%b","data":{ "a": "<&>", "n": 1.0 }}' % channel.encode()
    send(server, "publish", body)
    answer = send(server, "history", b'{"channel":"%b","limit":1}' % channel.encode())
    assert rb'"data":{"a":"\u003c\u0026\u003e","n":1.0}' in answer.body
