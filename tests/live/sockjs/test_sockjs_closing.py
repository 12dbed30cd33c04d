"""Ends of SockJS sessions: close frames, second receivers, aborted ones, silence; heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.sockjs.client import (
    BAD_REQUEST,
    BUSY,
    FORCED,
    INTERRUPTED,
    OPTIONS,
    RECEIVING,
    SERVERS,
    STREAMING,
    XHR,
    XHR_STREAMING,
    Receiver,
    Session,
    Transport,
    command,
    connected,
    data_of,
    name_of,
    replies,
)
from tests.protocol_client import ProtocolClient
from tests.server import Server


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture(params=RECEIVING, ids=name_of)
def transport(request: pytest.FixtureRequest) -> Transport:
    found: Transport = request.param
    return found


async def one_frame(session: Session, transport: Transport) -> str:
    """Receive by any transport, which must get one frame and no more."""
    async with session.receive(transport) as receiver:
        frame = await receiver.frame()
        await receiver.end()
        return frame


async def streaming(session: Session) -> Receiver:
    """A streaming response: another receiver is refused."""
    receiver = Receiver(await session.ask(XHR_STREAMING), XHR_STREAMING)
    await receiver.begin()
    return receiver


# closing by the server


async def test_close_frame_ends_the_response_and_is_repeated(
    server: Server, transport: Transport
) -> None:
    session = await Session(server).open()
    await session.send("no command")
    assert [await one_frame(session, transport) for _ in range(3)] == [BAD_REQUEST] * 3


async def test_close_frame_comes_to_a_request_that_waits(
    server: Server, transport: Transport, unique: str
) -> None:
    session = await Session(server).open()
    await session.send(command(1, "connect", token=connection_token(unique)))
    assert replies(await session.poll())[0]["id"] == 1
    receiver = Receiver(await session.ask(transport), transport)

    await asyncio.to_thread(server.api, "disconnect", user=unique)

    await receiver.begin()
    assert await receiver.frame() == FORCED
    await receiver.end()
    assert await one_frame(session, transport) == FORCED
    await receiver.exchange.close()


# two receivers


async def test_second_receiver_is_refused_and_the_first_goes_on(
    server: Server, transport: Transport
) -> None:
    session = await Session(server).open()
    first = await streaming(session)
    assert await one_frame(session, transport) == BUSY
    await session.command("connect")
    assert (await first.replies())[0]["id"] == 1
    await first.exchange.close()


# aborted receivers


async def test_aborted_receiver_ends_the_session(
    server: Server, connect: Callable[..., Any], transport: Transport, unique: str
) -> None:
    """It is not known what the client read, so the client has to recover."""
    session, observer = await seen(server, connect, f"joins:{unique}")
    receiver = Receiver(await session.ask(transport), transport)
    if transport in STREAMING:
        await receiver.begin()
    else:
        assert await one_frame(session, XHR_STREAMING) == BUSY

    await receiver.exchange.abort()

    assert (await observer.push())["type"] == 2
    assert [await one_frame(session, transport) for _ in range(2)] == [INTERRUPTED] * 2
    assert (await session.post(b'["{}"]')).status == 404


async def test_response_that_was_read_to_its_end_ends_no_session(
    server: Server, unique: str
) -> None:
    """Each connection is cut after a polling response: that is no abortion."""
    session = await connected(server, unique)
    for number in range(10):
        server.publish(unique, number)
        receiver = Receiver(await session.ask(), XHR)
        await receiver.begin()
        assert data_of(await receiver.replies()) == [number]
        await receiver.exchange.abort()


async def seen(
    server: Server, connect: Callable[..., Any], channel: str
) -> tuple[Session, ProtocolClient]:
    """A session that is subscribed to a channel, and a client that has seen it join."""
    observer: ProtocolClient = await connect(server)
    await observer.result("subscribe", {"channel": channel})
    await observer.push()
    session = await connected(server)
    await session.command("subscribe", channel=channel)
    assert (await observer.push())["type"] == 1
    while not any(reply.get("id") == 2 for reply in replies(await session.poll())):
        pass
    return session, observer


# silence


# heartbeats, and clients that do not connect
