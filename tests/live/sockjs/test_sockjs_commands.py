"""Commands over SockJS: the same client as over WebSocket, whatever carries it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.live.sockjs.client import (
    EVENTSOURCE,
    OPEN,
    OPTIONS,
    RECEIVING,
    SERVERS,
    Receiver,
    Session,
    Transport,
    data_of,
    name_of,
    replies,
)
from tests.server import Server


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture(params=RECEIVING, ids=name_of)
def transport(request: pytest.FixtureRequest) -> Transport:
    found: Transport = request.param
    return found


class Client:
    """A client that receives by any transport."""

    def __init__(self, server: Server, transport: Transport) -> None:
        self.session = Session(server)
        self._transport = transport
        self._stack = AsyncExitStack()
        self._receiver: Receiver | None = None
        self._waiting: list[dict[str, Any]] = []
        self.client = ""

    async def __aenter__(self) -> Client:
        assert await self.frame() == OPEN
        self.client = (await self.result("connect"))["client"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def frame(self) -> str:
        """The next frame: of a response that goes on, or of another one."""
        if not self._transport.prelude_end:
            return await self.session.poll(self._transport)
        if self._receiver is None:
            receiving = self.session.receive(self._transport)
            self._receiver = await self._stack.enter_async_context(receiving)
        return await self._receiver.frame()

    async def next(self) -> dict[str, Any]:
        """The next reply or push."""
        while not self._waiting:
            self._waiting += replies(await self.frame())
        return self._waiting.pop(0)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; returns the next reply or push, which is its reply."""
        number = await self.session.command(method, **params)
        reply = await self.next()
        assert reply["id"] == number, reply
        return reply

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        """As `call`, for a command that must succeed."""
        reply = await self.call(method, **params)
        assert "error" not in reply, reply
        result: dict[str, Any] = reply.get("result", {})
        return result


async def test_client_publishes_to_others_and_to_itself(
    server: Server, connect: Callable[..., Any], transport: Transport, unique: str
) -> None:
    channel = f"kept:{unique}"
    observer = await connect(server)
    await observer.result("subscribe", {"channel": channel})
    async with Client(server, transport) as client:
        await client.result("subscribe", channel=channel)

        number = await client.session.command("publish", channel=channel, data=[1])
        came = [await client.next(), await client.next()]

    assert (await observer.publication())["data"] == [1]
    assert [each["id"] for each in came if "id" in each] == [number]
    assert data_of(each for each in came if "id" not in each) == [[1]]


@pytest.mark.parametrize("transport", [RECEIVING[0], EVENTSOURCE], ids=name_of, indirect=True)
async def test_client_recovers_what_it_missed_in_a_new_session(
    server: Server, transport: Transport, unique: str
) -> None:
    channel = f"kept:{unique}"
    async with Client(server, transport) as client:
        position = await client.result("subscribe", channel=channel)
        await asyncio.to_thread(server.publish, channel, 1)
        push = (await client.next())["result"]["data"]
        assert (push["data"], push["offset"]) == (1, 1)
    for number in (2, 3):
        server.publish(channel, number)

    async with Client(server, transport) as client:
        result = await client.result(
            "subscribe", channel=channel, recover=True, offset=1, epoch=position["epoch"]
        )
        history = await client.result("history", channel=channel)

        server.publish(channel, 4)
        [live] = data_of([await client.next()])

    assert result["recovered"] is True
    assert [publication["data"] for publication in result["publications"]] == [2, 3]
    assert [publication["data"] for publication in history["publications"]] == [1, 2, 3]
    assert live == 4
