"""The refresh endpoint. docs/protocol.md, 7.3."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import BAD_REQUEST, EXPIRED, Connect, Serve
from tests.live.proxy.application import Answer, Application, Request, refreshing
from tests.live.signing import connect_expiring
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

SOON = 0.5
"""Seconds until a connection expires."""


@pytest.fixture
def server(serve: Serve, application: Application) -> Server:
    """A server that asks the application; it runs before a test makes its tokens."""
    return serve(**refreshing(application))


def in_an_hour() -> int:
    return int(time.time()) + 3600


async def asked(application: Application, number: int = 1) -> list[Request]:
    """Wait until the refresh endpoint was asked so often."""
    await asyncio.to_thread(wait_until, lambda: len(application.asked("/refresh")) >= number)
    return application.asked("/refresh")


async def stays(client: ProtocolClient) -> None:
    """The connection is not being closed."""
    await client.result("ping")


async def conn_info(client: ProtocolClient, channel: str) -> Any:
    """The connection info that others see from now on; "nothing" for none."""
    await client.result("subscribe", {"channel": channel})
    presence = (await client.result("presence", {"channel": channel}))["presence"]
    return presence[client.client].get("conn_info", "nothing")


# the request


async def test_body_says_user_and_is_sent_when_the_connection_expires(
    server: Server, connect: Connect, application: Application, format_name: str, unique: str
) -> None:
    application.answer("/refresh", {"result": {"expire_at": in_an_hour()}})
    client, expires_at = await connect_expiring(connect, server, SOON, unique)

    (request,) = await asked(application)

    assert time.time() >= expires_at
    assert request.body.decode() == (
        f'{{"client":"{client.client}","transport":"websocket","protocol":"{format_name}",'
        f'"encoding":"json","user":"{unique}"}}'
    )
    await stays(client)


async def test_headers_of_the_handshake_are_passed_on(
    server: Server, connect: Connect, application: Application
) -> None:
    headers = {"Cookie": "session=1", "X-Other": "stays here"}
    await connect_expiring(connect, server, SOON, additional_headers=headers)
    (request,) = await asked(application)
    assert request.headers["Cookie"] == "session=1"
    assert request.headers["Content-Type"] == "application/json"
    assert "X-Other" not in request.headers


async def test_connection_without_an_expiry_is_not_asked_about(
    server: Server, connect: Connect, application: Application
) -> None:
    application.answer("/refresh", {"result": {"expire_at": in_an_hour()}})
    lasting = await connect(server, token=connection_token("17"))
    expiring, _ = await connect_expiring(connect, server, SOON, "18")
    requests = await asked(application)
    assert [request.json["client"] for request in requests] == [expiring.client]
    await stays(lasting)


async def test_connection_of_the_connect_endpoint_is_asked_about(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    expires_at = int(time.time()) + 2
    application.answer("/connect", {"result": {"user": unique, "expire_at": expires_at}})
    application.answer("/refresh", {"result": {"expire_at": in_an_hour()}})
    client = await connect(server, user=None)
    (request,) = await asked(application)
    assert time.time() >= expires_at
    assert (request.json["client"], request.json["user"]) == (client.client, unique)
    await stays(client)


async def test_reply_to_connect_does_not_tell_the_expiry(
    server: Server, connect: Connect, application: Application, format_name: str
) -> None:
    client = await connect(server, connected=False)
    result = await client.result("connect", {"token": connection_token("17", ttl=300)})
    assert set(result) == {"client", "version"}


@pytest.mark.parametrize("ttl", [300, None])
async def test_refresh_command_disconnects(
    server: Server, connect: Connect, application: Application, format_name: str, ttl: int | None
) -> None:
    token = connection_token("17", ttl=ttl)
    client = await connect(server, token=token)
    await client.send("refresh", {"token": connection_token("17", ttl=300)})
    assert await client.closed() == BAD_REQUEST


# the answer


async def test_connection_is_asked_about_again_at_its_new_expiry(
    server: Server, connect: Connect, application: Application
) -> None:
    new_expiry: list[int] = []

    def refresh(request: Request) -> Answer:
        new_expiry.append(int(time.time()) + 2 if not new_expiry else in_an_hour())
        return Answer({"result": {"expire_at": new_expiry[-1]}})

    application.answers["/refresh"] = refresh
    client, _ = await connect_expiring(connect, server, SOON)

    await asked(application, 2)

    assert time.time() >= new_expiry[0]
    await stays(client)


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"info": {"name": "new"}}, {"name": "new"}), ({"info": None}, None), ({}, {"name": "old"})],
    ids=["new", "null", "none"],
)
async def test_info_replaces_the_connection_info(
    server: Server,
    connect: Connect,
    application: Application,
    unique: str,
    given: dict[str, Any],
    expected: Any,
) -> None:
    before_seen = threading.Event()
    body = {"result": {"expire_at": in_an_hour(), **given}}
    application.answer("/refresh", body, when=before_seen)
    old = {"name": "old"}
    client, _ = await connect_expiring(connect, server, SOON, info=old)
    assert await conn_info(client, f"present:{unique}before") == {"name": "old"}
    before_seen.set()

    await asked(application)

    deadline = time.monotonic() + 20
    number = 0
    while (now := await conn_info(client, f"present:{unique}{number}")) != expected:
        assert time.monotonic() < deadline, now
        number += 1
    await stays(client)


REFUSALS: dict[str, dict[str, Any]] = {
    "disconnect": {"disconnect": {"code": 4000, "reason": "no", "reconnect": False}},
    "expired": {"result": {"expired": True, "expire_at": 2**40}},
    "expire_at is past": {"result": {"expire_at": 1}},
    "only info": {"result": {"info": {"name": "new"}}},
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
async def test_answer_without_a_new_expiry_closes_as_expired(
    server: Server, connect: Connect, application: Application, answer: dict[str, Any]
) -> None:
    application.answer("/refresh", answer)
    client, expires_at = await connect_expiring(connect, server, SOON)
    # at once, without the window of clients that refresh by themselves
    assert await client.closed() == EXPIRED
    assert time.time() >= expires_at


# failures


FAILURES: dict[str, Answer] = {
    "status 500": Answer(status=500),
    "expire_at is a string": Answer({"result": {"expire_at": "soon"}}),
    "no answer in time": Answer(when=threading.Event()),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_failed_call_leaves_the_connection_open(
    server: Server, connect: Connect, application: Application, failure: Answer
) -> None:
    application.answers["/refresh"] = failure
    client, _ = await connect_expiring(connect, server, SOON)
    await known_to_ask_later(server, client)
    if failure.when is not None:
        failure.when.set()
    await stays(client)
    assert len(application.asked("/refresh")) == 1


async def known_to_ask_later(server: Server, client: ProtocolClient) -> None:
    """Wait until the server says that it will ask again."""
    line = f"Refresh of client {client.client} failed, retrying in 60 s"
    await asyncio.to_thread(wait_until, lambda: line in server.log)


async def test_slow_endpoint_stalls_neither_the_client_nor_others(
    server: Server, connect: Connect, application: Application
) -> None:
    release = threading.Event()
    application.answer("/refresh", {"result": {"expire_at": in_an_hour()}}, when=release)
    other = await connect(server)
    client, _ = await connect_expiring(connect, server, SOON)
    await asyncio.to_thread(wait_until, lambda: application.waiting == 1)

    try:
        await stays(client)
        await stays(other)
        assert application.waiting == 1  # it still waits
    finally:
        release.set()


async def test_client_that_left_while_the_endpoint_thinks_is_gone(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    release = threading.Event()
    application.answer("/refresh", {"result": {"expire_at": in_an_hour()}}, when=release)
    client, _ = await connect_expiring(connect, server, SOON)
    await client.result("subscribe", {"channel": f"present:{unique}"})
    await asyncio.to_thread(wait_until, lambda: application.waiting == 1)

    await client.socket.close()
    release.set()

    def gone() -> bool:
        reply = server.api("presence", channel=f"present:{unique}")
        return bool(reply["result"]["presence"] == {})

    await asyncio.to_thread(wait_until, gone)
