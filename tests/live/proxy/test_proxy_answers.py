"""What all endpoints may answer, and what failed calls mean. docs/protocol.md, 7.1."""

from __future__ import annotations

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
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

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
    "no JSON": {"body": b"<html>"},
    "compressed": {"body": {}, "headers": {"Content-Encoding": "gzip"}},
    "cut off": {"body": {"result": {}}, "length": 1000},
    "redirect without a place": {"status": 307},
    "redirect to a file": {"status": 307, "headers": {"Location": "file:///etc/hostname"}},
    "redirect to nonsense": {"status": 307, "headers": {"Location": "http://[::/"}},
    "redirect to itself": {"status": 307, "headers": {"Location": "?again"}},
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_failed_call_is_error_100(
    client: ProtocolClient, application: Application, unique: str, failure: dict[str, Any]
) -> None:
    application.answer("/rpc", **failure)
    assert (await ask(client, "rpc", unique))["error"] == INTERNAL_ERROR
    assert application.requests


@pytest.mark.parametrize("kind", ASKING)
async def test_client_may_ask_again_after_a_failed_call(
    server: Server, connect: Connect, application: Application, unique: str, kind: str
) -> None:
    client = await client_for(connect, server, kind)
    application.answer(f"/{kind}", status=500)
    assert (await ask(client, kind, unique))["error"] == INTERNAL_ERROR
    application.answer(f"/{kind}", {"result": {}})
    assert "error" not in await ask(client, kind, unique)


@pytest.mark.parametrize("kind", ASKING)
async def test_error_is_passed_on(
    server: Server,
    connect: Connect,
    application: Application,
    unique: str,
    kind: str,
    format_name: str,
) -> None:
    client = await client_for(connect, server, kind)
    error = {"code": 2**32 - 1, "message": "not <today>"}
    application.answer(f"/{kind}", {"error": error, "result": {}})
    assert (await ask(client, kind, unique))["error"] == error


@pytest.mark.parametrize("kind", ASKING)
async def test_disconnect_is_executed_as_given_and_wins_over_error_and_result(
    server: Server,
    connect: Connect,
    application: Application,
    unique: str,
    kind: str,
    format_name: str,
) -> None:
    client = await client_for(connect, server, kind)
    disconnect = {"code": 4321, "reason": "go away", "reconnect": True}
    error = {"code": 1000, "message": "no"}
    application.answer(f"/{kind}", {"result": {}, "error": error, "disconnect": disconnect})

    before = len(client.received)
    await client.send(*asking(kind, unique))

    assert await client.closed() == (4321, '{"reason":"go away","reconnect":true}')
    assert len(client.received) == before


async def test_disconnect_with_a_code_and_a_reason_that_no_frame_can_carry_is_cut(
    client: ProtocolClient, application: Application, unique: str
) -> None:
    application.answer("/rpc", {"disconnect": {"code": 2**32 - 1, "reason": "\u00e9" * 1000}})
    await client.send(*asking("rpc", unique))
    code, text = await client.closed()
    assert code == 4000
    assert text.startswith('{"reason":"\\u00e9\\u00e9')
    assert text.endswith('","reconnect":false}')


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
    server: Server, client: ProtocolClient, application: Application, unique: str
) -> None:
    before = len(server.log)
    await ask(client, "rpc", unique)
    await ask(client, "subscribe", unique)
    assert len(application.requests) == 2
    application.answer("/rpc", status=500)
    await ask(client, "rpc", unique)
    wait_until(lambda: server.log[before:].endswith("failed: status 500\n"))
    assert server.log[before:].count("\n") == 1
