"""What the response of an endpoint means. docs/protocol.md, 7."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from realtime.errors import Disconnect, Error, InternalError
from realtime.node.hooks import Handshake, Identity, Refreshed
from realtime.payload import Payload, check
from realtime.proxy import responses
from tests.unit.proxy.endpoint_site import (
    BINARY,
    DATA,
    JSON,
    KINDS,
    NO_JSON,
    PROTOBUF,
    Site,
    base64_of,
)


def said(found: Payload | None) -> str | None:
    return None if found is None else found.raw.decode()


UNUSABLE: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b"<html>",
    "half of JSON": b'{"result": {}',
    "JSON and more": b'{"result": {}} {}',
    "an array": [],
    "a string": "result",
    "result is a list": {"result": []},
    "result is a string": {"result": "yes"},
}
UNUSABLE_REFUSALS: dict[str, Any] = {
    "not UTF-8": b'{"error": {"code": 1000, "message": "\xff"}}',
    "error is a string": {"error": "no"},
    "code of the error is a string": {"error": {"code": "1000"}},
    "code of the error is negative": {"error": {"code": -1}},
    "code of the error is too large": {"error": {"code": 2**32}},
    "message of the error is a number": {"error": {"code": 1000, "message": 5}},
    "disconnect is a number": {"disconnect": 4000},
    "code of the disconnect is a fraction": {"disconnect": {"code": 4000.5}},
    "reconnect is a string": {"disconnect": {"code": 4000, "reconnect": "no"}},
    "error is right and result wrong": {"error": {"code": 1000}, "result": 5},
}
UNUSABLE_RESULTS: list[tuple[str, Handshake, dict[str, Any]]] = [
    ("connect", JSON, {"user": 17}),
    ("connect", JSON, {"expire_at": "1700000000"}),
    ("connect", JSON, {"expire_at": 1700000000.5}),
    ("connect", JSON, {"expire_at": 2**63}),
    ("connect", JSON, {"channels": "ns:a"}),
    ("connect", JSON, {"channels": ["ns:a", 5]}),
    ("connect", JSON, {"b64info": 5}),
    ("connect", JSON, {"b64data": {}}),
    ("refresh", JSON, {"expire_at": "soon"}),
    ("refresh", JSON, {"expired": 1}),
    ("refresh", JSON, {"expire_at": 2**40, "b64info": 1}),
    ("refresh", BINARY, {"expire_at": 2**40, "b64info": "???"}),
    ("subscribe", JSON, {"b64info": 5}),
    ("publish", JSON, {"b64data": {}, "data": 1}),
    *(
        (kind, BINARY, {name: value})
        for kind, name in [
            ("connect", "b64info"),
            ("connect", "b64data"),
            ("subscribe", "b64info"),
            ("publish", "b64data"),
            ("rpc", "b64data"),
        ]
        for value in ("???", "YQ", base64_of(b"no JSON"), base64_of(b"1 2"))
    ),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("response", UNUSABLE.values(), ids=UNUSABLE)
async def test_response_that_cannot_be_used_fails_the_call(
    site: Site, kind: str, response: Any
) -> None:
    site.response = response
    with pytest.raises(InternalError):
        await site.ask(kind)


@pytest.mark.parametrize("response", UNUSABLE_REFUSALS.values(), ids=UNUSABLE_REFUSALS)
async def test_refusal_that_cannot_be_used_fails_the_call(site: Site, response: Any) -> None:
    site.response = response
    with pytest.raises(InternalError):
        await site.ask("rpc")


@pytest.mark.parametrize(("kind", "handshake", "result"), UNUSABLE_RESULTS)
async def test_result_of_wrong_types_or_without_json_fails_the_call(
    site: Site, kind: str, handshake: Handshake, result: dict[str, Any]
) -> None:
    site.response = {"result": result}
    with pytest.raises(InternalError):
        await site.ask(kind, handshake)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [({}, 0, ""), ({"code": 2**32 - 1, "message": "not <today>"}, 2**32 - 1, "not <today>")],
)
async def test_error_is_passed_on_and_wins_over_a_result(
    site: Site, error: dict[str, Any], code: int, message: str
) -> None:
    site.response = {"error": error, "result": {}}
    with pytest.raises(Error) as raised:
        await site.ask("rpc")
    assert (raised.value.code, raised.value.message) == (code, message)


@pytest.mark.parametrize(
    ("given", "code", "reason", "reconnect"),
    [
        ({}, 4000, "", False),
        ({"code": 0, "reason": "x"}, 4000, "x", False),
        ({"code": 1005, "reconnect": True}, 4000, "", True),
        ({"code": 2999}, 4000, "", False),
        ({"code": 3000}, 3000, "", False),
        ({"code": 4999}, 4999, "", False),
        ({"code": 5000}, 4000, "", False),
        ({"code": 2**32 - 1}, 4000, "", False),
        ({"code": None, "reason": None}, 4000, "", False),
    ],
)
async def test_disconnect_with_a_code_that_no_frame_can_carry_has_code_4000(
    site: Site, given: dict[str, Any], code: int, reason: str, reconnect: bool
) -> None:
    site.response = {"disconnect": given, "error": {"code": 1000}, "result": {}}
    with pytest.raises(Disconnect) as raised:
        await site.ask("rpc")
    found = raised.value
    assert (found.code, found.reason, found.reconnect) == (code, reason, reconnect)


@pytest.mark.parametrize("letter", ["x", '"', "\u00e9", "\U0001f600"])
async def test_reason_is_cut_to_what_a_close_frame_can_carry(site: Site, letter: str) -> None:
    site.response = {"disconnect": {"code": 4001, "reason": letter * 1000}}
    with pytest.raises(Disconnect) as raised:
        await site.ask("rpc")
    reason = raised.value.reason
    assert len(reason) >= 5
    assert reason == letter * len(reason)


NOBODY: list[Any] = [{}, {"result": None}, {"result": None, "error": None, "disconnect": None}]


@pytest.mark.parametrize("response", [*NOBODY, {"user": "17"}], ids=json.dumps)
async def test_response_without_a_result_says_nothing(site: Site, response: Any) -> None:
    site.response = response
    assert [await site.ask(kind) for kind in KINDS if kind != "publish"] == [None] * 4
    assert (await site.ask("publish")).raw == DATA


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, Identity("")),
        ({"user": None, "channels": None, "expire_at": None}, Identity("")),
        ({"user": "", "expire_at": 0}, Identity("")),
        ({"user": "17", "channels": ["a", "b"]}, Identity("17", channels=("a", "b"))),
        ({"expire_at": -(2**63)}, Identity("", expires_at=-(2**63))),
        ({"info": "<é", "data": None}, Identity("", check(b'"<\\u00e9"'), data=check(b"null"))),
    ],
)
async def test_connect_endpoint_says_who_the_client_is(
    site: Site, result: dict[str, Any], expected: Identity
) -> None:
    site.response = {"result": result}
    assert await site.ask("connect") == expected


REFUSALS: list[dict[str, Any]] = [
    {"error": {"code": 1000, "message": "no"}},
    {"error": "no"},
    {"disconnect": {"code": 4000, "reason": "no"}},
    {"disconnect": 4000, "error": 5},
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=json.dumps)
async def test_refresh_endpoint_refuses_nothing_by_an_error(
    site: Site, refusal: dict[str, Any]
) -> None:
    site.response = refusal
    assert await site.ask("refresh") is None
    site.response = refusal | {"result": {"expire_at": 2**40, "info": "renewed"}}
    assert await site.ask("refresh") == Refreshed(2**40, check(b'"renewed"'))


@pytest.mark.parametrize(
    ("handshake", "result", "expected"),
    [
        (JSON, {"expired": True}, None),
        (JSON, {"expired": True, "expire_at": 2**40}, None),
        (JSON, {}, Refreshed(0)),
        (JSON, {"expire_at": None}, Refreshed(0)),
        (JSON, {"expire_at": -1}, Refreshed(-1)),
        (JSON, {"expire_at": 5, "info": None}, Refreshed(5, check(b"null"))),
        (JSON, {"expire_at": 5, "b64info": "MQ=="}, Refreshed(5)),
        (BINARY, {"expire_at": 5, "info": 1, "b64info": "Mg=="}, Refreshed(5, check(b"2"))),
        (BINARY, {"expire_at": 5, "info": 1}, Refreshed(5)),
    ],
)
async def test_refresh_endpoint_says_until_when_and_who(
    site: Site, handshake: Handshake, result: dict[str, Any], expected: Refreshed | None
) -> None:
    site.response = {"result": result}
    assert await site.ask("refresh", handshake) == expected


def only(name: str) -> Callable[[Any], str | None]:
    return lambda found: said(found and getattr(found, name))


PLAIN: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"x": None}, "null"),
    ({"x": False}, "false"),
    ({"x": ""}, '""'),
]
BOTH: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"x": [1], "b64x": base64_of(b"2")}, "[1]", "2"),
    ({"x": 1}, "1", None),
    ({"b64x": base64_of(b'{"a": 1}')}, None, '{"a": 1}'),
    ({"b64x": ""}, None, None),
]


@pytest.mark.parametrize(
    ("kind", "name", "read"),
    [
        ("connect", "info", only("info")),
        ("connect", "data", only("data")),
        ("subscribe", "info", said),
        ("rpc", "data", said),
    ],
)
async def test_encoding_of_the_connection_says_which_field_counts(
    site: Site, kind: str, name: str, read: Callable[[Any], str | None]
) -> None:
    async def found(handshake: Handshake, result: dict[str, Any]) -> str | None:
        renamed = {key.replace("x", name): value for key, value in result.items()}
        site.response = {"result": renamed}
        return read(await site.ask(kind, handshake))

    for result, expected in PLAIN:
        assert await found(JSON, result) == expected
    for result, plain, encoded in BOTH:
        assert await found(JSON, result) == plain
        assert [await found(each, result) for each in (BINARY, PROTOBUF)] == [encoded] * 2
    # nobody reads it in the encoding json
    assert await found(JSON, {"b64x": "???"}) is None


@pytest.mark.parametrize("kind", ["connect", "rpc"])
async def test_binary_data_for_a_protobuf_client_may_be_any_bytes(site: Site, kind: str) -> None:
    site.response = {"result": {"b64data": base64_of(NO_JSON)}}
    found = await site.ask(kind, PROTOBUF)
    assert (found.data if kind == "connect" else found).raw == NO_JSON


@pytest.mark.parametrize("handshake", [JSON, BINARY], ids=["json", "binary"])
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, DATA),
        ({"b64data": ""}, DATA),
        ({"data": {"text": "new"}}, b'{"text": "new"}'),
        ({"data": None, "b64data": base64_of(b"2")}, b"null"),
        ({"data": False}, b"false"),
        ({"data": ""}, b'""'),
        ({"data": 1, "b64data": base64_of(b"2")}, b"1"),
        ({"b64data": base64_of(b"2")}, b"2"),
    ],
)
async def test_publish_endpoint_replaces_data_whatever_the_encoding(
    site: Site, handshake: Handshake, result: dict[str, Any], expected: bytes
) -> None:
    site.response = {"result": result}
    assert (await site.ask("publish", handshake)).raw == expected


async def test_keys_match_without_regard_to_case_and_unknown_ones_are_ignored(site: Site) -> None:
    site.response = {"Result": {"DATA": 1, "more": [2]}, "other": None, "error": None}
    assert said(await site.ask("rpc")) == "1"


async def test_spelling_of_data_is_kept(site: Site) -> None:
    text = b'{"b": 1.0, "a": 123456789012345678901, "b": 1E5}'
    site.response = b'{"result": {"data": %b }}' % text
    for kind in ("publish", "rpc"):
        assert (await site.ask(kind)).raw == text


@pytest.mark.parametrize(
    ("error", "temporary"),
    [
        ({"code": 1000}, False),
        ({"code": 1000, "temporary": False}, False),
        ({"code": 1000, "temporary": True}, True),
        ({"code": 1000, "temporary": None}, False),
        ({"code": 100, "temporary": False}, True),
    ],
    ids=str,
)
def test_error_of_an_endpoint_may_be_temporary(error: dict[str, Any], temporary: bool) -> None:
    with pytest.raises(Error) as raised:
        responses.read(json.dumps({"error": error}).encode(), responses.data)
    assert raised.value.temporary is temporary


@pytest.mark.parametrize(
    ("result", "expected"),
    [({}, None), ({"meta": None}, None), ({"meta": {"a": 1}}, b'{"a":1}'), ({"meta": 5}, b"5")],
    ids=str,
)
def test_connect_endpoint_may_give_meta(result: dict[str, Any], expected: bytes | None) -> None:
    found = responses.read(json.dumps({"result": result}).encode(), responses.connect)
    assert found is not None
    meta = responses.meta(found)
    assert (None if meta is None else meta.json) == expected
