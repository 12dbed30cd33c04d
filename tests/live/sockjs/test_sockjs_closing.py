"""Ends of SockJS sessions: close frames, second receivers, aborted ones, silence; heartbeats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.sockjs.client import (
    BAD_REQUEST,
    BUSY,
    FORCED,
    HEARTBEAT,
    INTERRUPTED,
    OPEN,
    OPTIONS,
    POLLING,
    QUICK,
    RECEIVING,
    SERVERS,
    SHUTDOWN,
    STALE,
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

TIMEOUT = 5.0
"""Seconds until a session without a receiver is closed (docs/protocol.md, 8)."""
SLACK = 10.0
"""Seconds that a busy machine may add."""


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


async def two_polls(session: Session) -> tuple[Receiver, Receiver]:
    """Of two polling requests at once, the one that waits and the one that is refused."""
    polls = [Receiver(await session.ask(), XHR) for _ in range(2)]
    begun = [asyncio.create_task(each.begin()) for each in polls]
    done, waiting = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()  # nothing has come, so it can be read later
    await asyncio.wait(begun)
    assert len(done) == 1
    sent_away, waits = polls if begun[0] in done else reversed(polls)
    assert await sent_away.frame() == BUSY
    return waits, sent_away


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


async def test_replies_come_before_the_close_frame(server: Server, transport: Transport) -> None:
    session = await Session(server).open()
    receiver = Receiver(await session.ask(transport), transport)
    if transport in STREAMING:
        await receiver.begin()

    await session.send(command(1, "connect") + command(2, "ping") + "no command")

    if transport in POLLING:
        await receiver.begin()
    ids = [reply["id"] for reply in await receiver.replies()]
    if transport in STREAMING:
        while not (frame := await receiver.frame()).startswith("c"):
            ids += [reply["id"] for reply in replies(frame)]
        assert ids == [1, 2]
    else:
        frame = await one_frame(session, transport)
        assert ids == [1, 2][: len(ids)]
    assert frame == BAD_REQUEST
    await receiver.end()
    await receiver.exchange.close()


async def test_closed_session_takes_nothing_more(server: Server) -> None:
    session = await Session(server).open()
    await session.send("no command")
    assert await session.poll() == BAD_REQUEST

    answer = await session.post(json.dumps([command(1, "connect")]).encode())

    assert answer.status == 404


async def test_granian_that_ends_waits_for_no_client(own_server: Callable[..., Server]) -> None:
    """It waits for the ends of all responses before it says that it ends."""
    server = own_server(server="granian", **OPTIONS)
    sessions = [await Session(server).open() for _ in range(2)]
    for session in sessions:
        await session.result("connect")
    stream = await streaming(sessions[0])
    poll, turned_away = await two_polls(sessions[1])

    assert await asyncio.to_thread(server.terminate) == 0

    await poll.begin()
    for receiver in (poll, stream):
        assert await receiver.frame() == SHUTDOWN
        await receiver.end()
    for receiver in (poll, stream, turned_away):
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


async def test_second_receiver_is_refused_while_a_polling_request_waits(
    server: Server, transport: Transport
) -> None:
    session = await Session(server).open()
    waits, sent_away = await two_polls(session)

    assert await one_frame(session, transport) == BUSY

    await session.command("connect")
    await waits.begin()
    assert (await waits.replies())[0]["id"] == 1
    for each in (waits, sent_away):
        await each.exchange.close()


async def test_refused_receiver_ends_nothing_when_it_goes(server: Server) -> None:
    session = await Session(server).open()
    first = await streaming(session)
    second = Receiver(await session.ask(XHR_STREAMING), XHR_STREAMING)

    await second.exchange.abort()

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


async def test_session_without_a_receiver_is_forgotten_after_five_seconds(
    serve: Callable[..., Server], connect: Callable[..., Any], unique: str
) -> None:
    async def abandon(server: Server, number: int) -> None:
        channel = f"joins:{unique}x{number}"
        session, observer = await seen(server, connect, channel)
        began = asyncio.get_running_loop().time()
        assert len((await observer.result("presence", {"channel": channel}))["presence"]) == 2

        leave = await observer.push()

        took = asyncio.get_running_loop().time() - began
        assert leave["type"] == 2
        # counted from the end of a request that was a moment ago
        assert TIMEOUT - 1 < took < TIMEOUT + SLACK
        assert len((await observer.result("presence", {"channel": channel}))["presence"]) == 1
        assert (await session.post(b'["{}"]')).status == 404
        assert await session.poll() == OPEN, "its name is free again"

    async def keep_polling(server: Server) -> None:
        session = await connected(server, unique)
        request = asyncio.create_task(session.poll())
        await asyncio.sleep(TIMEOUT + 1)
        server.publish(unique, 1)
        assert data_of(replies(await request)) == [1]

    servers = [serve(server=name, **OPTIONS) for name in SERVERS]
    await asyncio.gather(
        *(abandon(server, number) for number, server in enumerate(servers)),
        *(keep_polling(server) for server in servers),
        *(closed_session_is_forgotten(server) for server in servers),
    )


async def closed_session_is_forgotten(server: Server) -> None:
    """The close frame is repeated for five seconds, however often a request comes."""
    session = await Session(server).open()
    await session.send("no command")
    loop = asyncio.get_running_loop()
    assert await session.poll() == BAD_REQUEST
    began = loop.time()
    while (frame := await session.poll()) == BAD_REQUEST:
        assert loop.time() < began + TIMEOUT + SLACK
        await asyncio.sleep(0.1)
    assert frame == OPEN
    assert loop.time() - began > TIMEOUT - 1


# heartbeats, and clients that do not connect


async def test_heartbeats_come_in_silence_until_a_client_that_does_not_connect_is_stale(
    serve: Callable[..., Server], unique: str
) -> None:
    """A heartbeat each second; two seconds after it began the session has no client still."""

    async def stream(server: Server, transport: Transport) -> None:
        async with Session(server).receive(transport) as receiver:
            frames = [await receiver.frame()]
            while not frames[-1].startswith("c"):
                frames.append(await receiver.frame())
            await receiver.end()
        # the second heartbeat and the end come at the same time
        assert frames in ([OPEN, HEARTBEAT, STALE], [OPEN, HEARTBEAT, HEARTBEAT, STALE])

    async def poll(server: Server, transport: Transport) -> None:
        session = await Session(server).open(transport)
        frames: list[str] = []
        while not frames or not frames[-1].startswith("c"):
            frames.append(await session.poll(transport))
        assert frames in ([HEARTBEAT, STALE], [HEARTBEAT, HEARTBEAT, STALE])
        assert await session.poll(transport) == STALE

    async def vanish(server: Server) -> None:
        session = await Session(server).open()
        await asyncio.sleep(3)
        assert await session.poll() == STALE, "without a receiver it is stale, too"

    servers = [serve(server=name, **QUICK) for name in SERVERS]
    await asyncio.gather(
        *(stream(server, transport) for server in servers for transport in STREAMING),
        *(poll(server, transport) for server in servers for transport in POLLING),
        *(vanish(server) for server in servers),
    )
