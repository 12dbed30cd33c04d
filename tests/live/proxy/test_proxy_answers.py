"""What all endpoints may answer, and what failed calls mean. docs/protocol.md, 7.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.live.configurations import Connect, Serve
from tests.live.proxy.application import (
    ASKING,
    INTERNAL_ERROR,
    Application,
    ask,
    asking,
    client_for,
    proxied,
)
from tests.server import wait_until

FAILURES: dict[str, dict[str, Any]] = {
    "status 201": {"status": 201, "body": {"result": {}}},
    "status 202": {"status": 202, "body": {"result": {}}},
    "status 204": {"status": 204},
    "status 304": {"status": 304},
    "status 400": {"status": 400, "body": {"result": {}}},
    "status 401": {"status": 401, "body": {"result": {}}},
    "status 404": {"status": 404, "body": {"error": {"code": 1000, "message": "no"}}},
    "status 500": {"status": 500, "body": {"result": {}}},
    "status 503": {"status": 503, "body": {"disconnect": {"code": 4000}}},
    "nothing": {"body": b""},
    "no JSON": {"body": b"<html>"},
    "half of JSON": {"body": b'{"result": {}'},
    "JSON and more": {"body": b'{"result": {}} {}'},
    "an array": {"body": []},
    "a string": {"body": "result"},
    "not UTF-8": {"body": b'{"error": {"code": 1000, "message": "\xff"}}'},
    "result is a list": {"body": {"result": []}},
    "result is a string": {"body": {"result": "yes"}},
    "error is a string": {"body": {"error": "no"}},
    "code of the error is a string": {"body": {"error": {"code": "1000"}}},
    "code of the error is negative": {"body": {"error": {"code": -1}}},
    "code of the error is too large": {"body": {"error": {"code": 2**32}}},
    "message of the error is a number": {"body": {"error": {"code": 1000, "message": 5}}},
    "disconnect is a number": {"body": {"disconnect": 4000}},
    "code of the disconnect is a fraction": {"body": {"disconnect": {"code": 4000.5}}},
    "reconnect is a string": {"body": {"disconnect": {"code": 4000, "reconnect": "no"}}},
    "error is right and result wrong": {"body": {"error": {"code": 1000}, "result": 5}},
    "compressed": {"body": {}, "headers": {"Content-Encoding": "gzip"}},
    "cut off": {"body": {"result": {}}, "length": 1000},
    "redirect without a place": {"status": 307},
    "redirect to a file": {"status": 307, "headers": {"Location": "file:///etc/hostname"}},
    "redirect to nonsense": {"status": 307, "headers": {"Location": "http://[::/"}},
    "redirect to itself": {"status": 307, "headers": {"Location": "?again"}},
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("kind", ASKING)
async def test_failed_call_is_error_100(
    serve: Serve,
    connect: Connect,
    application: Application,
    unique: str,
    kind: str,
    failure: dict[str, Any],
) -> None:
    client = await client_for(connect, serve(**proxied(application)), kind)
    application.answer(f"/{kind}", **failure)
    assert (await ask(client, kind, unique))["error"] == INTERNAL_ERROR
    assert application.requests


@pytest.mark.parametrize("kind", ASKING)
async def test_client_may_ask_again_after_a_failed_call(
    serve: Serve, connect: Connect, application: Application, unique: str, kind: str
) -> None:
    client = await client_for(connect, serve(**proxied(application)), kind)
    application.answer(f"/{kind}", status=500)
    await ask(client, kind, unique)
    application.answer(f"/{kind}", {"result": {}})
    assert "error" not in await ask(client, kind, unique)


@pytest.mark.parametrize("kind", ASKING)
async def test_error_is_passed_on(
    serve: Serve,
    connect: Connect,
    application: Application,
    unique: str,
    kind: str,
    format_name: str,
) -> None:
    client = await client_for(connect, serve(**proxied(application)), kind)
    error = {"code": 2**32 - 1, "message": "not <today>"}
    application.answer(f"/{kind}", {"error": error, "result": {}})
    assert (await ask(client, kind, unique))["error"] == error


async def test_error_without_code_and_message_is_an_error_all_the_same(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(serve(**proxied(application)))
    application.answer("/rpc", {"error": {}})
    assert await ask(client, "rpc", unique) == {"id": 2, "error": {"code": 0, "message": ""}}


@pytest.mark.parametrize("kind", ASKING)
async def test_disconnect_is_executed_as_given_and_wins_over_error_and_result(
    serve: Serve,
    connect: Connect,
    application: Application,
    unique: str,
    kind: str,
    format_name: str,
) -> None:
    client = await client_for(connect, serve(**proxied(application)), kind)
    application.answer(
        f"/{kind}",
        {
            "result": {},
            "error": {"code": 1000, "message": "no"},
            "disconnect": {"code": 4321, "reason": "go away", "reconnect": True},
        },
    )

    before = len(client.received)
    await client.send(*asking(kind, unique))

    assert await client.closed() == (4321, '{"reason":"go away","reconnect":true}')
    assert len(client.received) == before


DISCONNECTS: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "nothing": ({}, (4000, '{"reason":"","reconnect":false}')),
    "0": ({"code": 0, "reason": "x"}, (4000, '{"reason":"x","reconnect":false}')),
    "999": ({"code": 999, "reason": "x"}, (4000, '{"reason":"x","reconnect":false}')),
    "1005": ({"code": 1005, "reconnect": True}, (4000, '{"reason":"","reconnect":true}')),
    "2999": ({"code": 2999}, (4000, '{"reason":"","reconnect":false}')),
    "3000": ({"code": 3000}, (3000, '{"reason":"","reconnect":false}')),
    "4999": ({"code": 4999}, (4999, '{"reason":"","reconnect":false}')),
    "5000": ({"code": 5000}, (4000, '{"reason":"","reconnect":false}')),
    "largest": ({"code": 2**32 - 1}, (4000, '{"reason":"","reconnect":false}')),
    "null": ({"code": None, "reason": None}, (4000, '{"reason":"","reconnect":false}')),
}


@pytest.mark.parametrize(("given", "expected"), DISCONNECTS.values(), ids=DISCONNECTS)
async def test_disconnect_with_a_code_that_no_frame_can_carry_closes_with_4000(
    serve: Serve,
    connect: Connect,
    application: Application,
    unique: str,
    given: dict[str, Any],
    expected: tuple[int, str],
) -> None:
    client = await connect(serve(**proxied(application)))
    application.answer("/rpc", {"disconnect": given})
    await client.send(*asking("rpc", unique))
    assert await client.closed() == expected


@pytest.mark.parametrize("letter", ["x", '"', "\u00e9", "\U0001f600"])
async def test_reason_is_cut_to_what_a_close_frame_can_carry(
    serve: Serve, connect: Connect, application: Application, unique: str, letter: str
) -> None:
    client = await connect(serve(**proxied(application)))
    application.answer("/rpc", {"disconnect": {"code": 4001, "reason": letter * 1000}})
    await client.send(*asking("rpc", unique))
    code, text = await client.closed()
    reason = json.loads(text)["reason"]
    assert code == 4001
    assert len(reason) >= 5
    assert reason == letter * len(reason)


async def test_keys_match_without_regard_to_case_and_unknown_ones_are_ignored(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(serve(**proxied(application)))
    application.answer("/rpc", {"Result": {"DATA": 1, "more": [2]}, "other": None, "error": None})
    assert (await ask(client, "rpc", unique))["result"] == {"data": 1}


# the log


def secretive(application: Application) -> dict[str, Any]:
    """Options of a server whose endpoints have passwords and queries."""
    options = proxied(application)
    for kind in ASKING:
        url = application.url(f"/{kind}?key=do-not-show")
        options[f"proxy_{kind}_endpoint"] = url.replace("//", "//operator:do-not-show@")
    return options


@pytest.mark.parametrize("kind", ASKING)
async def test_failed_call_is_one_line_in_the_log_without_what_was_sent_or_answered(
    serve: Serve, connect: Connect, application: Application, kind: str
) -> None:
    server = serve(**secretive(application))
    client = await client_for(
        connect, server, kind, additional_headers={"Cookie": "session=do-not-show"}
    )
    application.answer(f"/{kind}", {"result": "do-not-show"}, 500)

    await ask(client, kind, "do-not-show")

    line = f"The {kind} endpoint {application.url('/' + kind)} failed: status 500"
    wait_until(lambda: line in server.log)
    assert server.log.count(f"The {kind} endpoint") == 1
    assert "do-not-show" not in server.log


async def test_calls_that_succeed_are_not_logged(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    server = serve(**proxied(application))
    client = await connect(server)
    before = len(server.log)

    await ask(client, "rpc", unique)
    await ask(client, "subscribe", unique)

    assert len(application.requests) == 2
    application.answer("/rpc", status=500)
    await ask(client, "rpc", unique)
    wait_until(lambda: server.log[before:].endswith("failed: status 500\n"))
    assert server.log[before:].count("\n") == 1
