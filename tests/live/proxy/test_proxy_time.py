"""Slow endpoints, and many calls at once. docs/protocol.md, 7.1."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.live.configurations import Connect, Serve
from tests.live.proxy.application import (
    ASKING,
    INTERNAL_ERROR,
    PATIENT,
    Answer,
    Application,
    Request,
    ask,
    asking,
    client_for,
    proxied,
    refreshing,
)
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

TIMEOUT = 1.0
"""Seconds an endpoint may take by default."""


@pytest.fixture
def server(serve: Serve, application: Application) -> Server:
    """A server that waits as long as it does by default."""
    return serve(**proxied(application))


@pytest.mark.parametrize("kind", ASKING)
async def test_answer_that_takes_longer_than_the_timeout_is_error_100(
    server: Server, connect: Connect, application: Application, unique: str, kind: str
) -> None:
    client = await client_for(connect, server, kind)
    too_late = threading.Event()
    application.answer(f"/{kind}", when=too_late)
    asked_at = time.monotonic()

    try:
        assert (await ask(client, kind, unique))["error"] == INTERNAL_ERROR
    finally:
        too_late.set()

    assert time.monotonic() - asked_at >= TIMEOUT - 0.05


async def test_timeout_holds_for_all_redirects_together(
    client: ProtocolClient, application: Application, unique: str
) -> None:
    def slowly(request: Request) -> Answer:
        time.sleep(0.3)
        number = int(request.path.partition("?")[2] or 0)
        return Answer(status=307, headers={"Location": f"/rpc?{number + 1}"})

    application.answers["/rpc"] = slowly

    assert (await ask(client, "rpc", unique))["error"] == INTERNAL_ERROR

    assert len(application.requests) <= 4


async def test_timeout_holds_for_a_body_that_does_not_end(
    client: ProtocolClient, application: Application, unique: str
) -> None:
    too_late = threading.Event()
    application.answer("/rpc", between=too_late)
    try:
        assert (await ask(client, "rpc", unique))["error"] == INTERNAL_ERROR
    finally:
        too_late.set()


async def test_timeout_of_0_is_none(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    client = await connect(serve(**refreshing(application)))
    release = threading.Event()
    application.answer("/rpc", {"result": {"data": "late"}}, when=release)
    timer = threading.Timer(TIMEOUT + 0.5, release.set)
    timer.start()
    assert (await ask(client, "rpc", unique))["result"] == {"data": "late"}
    timer.join()


async def test_answer_that_is_too_large_is_error_100(
    server: Server, client: ProtocolClient, application: Application, unique: str
) -> None:
    before = len(server.log)
    application.answer("/rpc", b'{"result": {"data": "%b"}}' % (b"x" * 10 * 2**20))
    assert (await ask(client, "rpc", unique))["error"] == INTERNAL_ERROR
    wait_until(lambda: "larger than 10485760 bytes" in server.log[before:])


# many at once


@pytest.mark.parametrize("kind", ASKING)
async def test_slow_endpoint_stalls_nobody_else(
    serve: Serve, connect: Connect, application: Application, unique: str, kind: str
) -> None:
    server = serve(**proxied(application), **PATIENT)
    slow = [await client_for(connect, server, kind) for _ in range(5)]
    other = await connect(server)
    release = threading.Event()
    application.answer(f"/{kind}", when=release)
    for number, client in enumerate(slow):
        await client.send(*asking(kind, f"{unique}{number}"))
    wait_until(lambda: application.waiting == len(slow))

    try:
        await other.result("ping")
        another_kind = "rpc" if kind != "rpc" else "publish"
        assert "result" in await ask(other, another_kind, unique)
        assert application.waiting == len(slow)  # they still wait
    finally:
        release.set()

    assert ["error" in await client.reply() for client in slow] == [False] * len(slow)


async def test_calls_of_many_clients_run_at_the_same_time_but_100_at_most(
    serve: Serve, connect: Connect, application: Application, unique: str
) -> None:
    """None of 150 fails, and each client gets its own answer."""
    server = serve(**refreshing(application))
    clients = [await connect(server) for _ in range(150)]
    everybody = threading.Event()
    application.answers["/rpc"] = lambda request: Answer(
        {"result": {"data": request.json["data"]}}, when=everybody
    )
    for number, client in enumerate(clients):
        await client.send("rpc", {"data": number})
    wait_until(lambda: application.waiting >= 100)
    for _ in range(20):  # an endpoint of another kind has turns of its own
        await connect(server, user=None)
    everybody.set()

    replies = await asyncio.gather(*(client.reply() for client in clients))

    assert [reply["result"]["data"] for reply in replies] == list(range(150))
    assert application.most_waiting == 100


async def test_calls_over_the_limit_wait_for_their_turn_within_the_timeout(
    server: Server, connect: Connect, application: Application, unique: str
) -> None:
    clients = [await connect(server) for _ in range(101)]
    never = threading.Event()
    application.answer("/rpc", when=never)

    try:
        for client in clients:
            await client.send("rpc", {"data": unique})
        replies = await asyncio.gather(*(client.reply() for client in clients))
    finally:
        never.set()

    assert [reply["error"] for reply in replies] == [INTERNAL_ERROR] * 101


async def test_commands_of_one_client_wait_for_its_call(
    client: ProtocolClient, application: Application, unique: str
) -> None:
    release = threading.Event()
    application.answer("/rpc", when=release)
    rpc, ping = await client.send_together(asking("rpc", unique), ("ping", None))
    wait_until(lambda: application.waiting == 1)
    release.set()
    await client.reply(ping)
    assert [reply["id"] for reply in client.received[1:]] == [rpc, ping]
