"""Tokens and names of sessions stay out of the logs of servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.conftest import connection_token
from tests.live.streaming.client import SSE, STREAMS, ask, connect_command, frame_of, streaming
from tests.live.streaming.listeners import EVENTS, address, listening
from tests.live.streaming.receivers import RECEIVERS, UNI_SSE, UNI_WEBSOCKET, receiving
from tests.server import Server


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
async def test_tokens_and_sessions_are_not_logged(
    own_server: Callable[..., Server], kind: str, unique: str
) -> None:
    server = own_server(server=kind, **(RECEIVERS | STREAMS), events=True)
    token = connection_token("17")
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    query = f"{SSE}?cf_connect={quote(frame_of(connect_command()).decode())}"
    assert (await ask(server, "GET", query, headers=elsewhere)).status == 403
    assert (await ask(server, "DELETE", query)).status == 405
    assert (await ask(server, "GET", address(token=token))).status == 400
    assert (await ask(server, "GET", address("a", token="", channel_token=token))).status == 401
    async with (
        listening(server, address(f"long:{unique}", token=token)) as listener,
        streaming(server, SSE, frame_of(connect_command()), "GET") as stream,
        receiving(server, UNI_SSE, "GET", {"token": token}) as events,
        receiving(server, UNI_WEBSOCKET, "query", {"token": token}) as frames,
    ):
        await listener.begun()
        await stream.connected()
        await stream.emulate(server, {"id": 2, "rpc": {}})
        for receiver in (events, frames):
            await receiver.message()
        stopping = asyncio.create_task(asyncio.to_thread(server.terminate))
        for receiver in (events, frames):
            assert await receiver.ending() == (3001, "shutdown")
        for exchange in (listener.exchange, stream.exchange):
            await exchange.rest()
        await stopping

    assert {
        path for path in (SSE, EVENTS, UNI_SSE, UNI_WEBSOCKET) if path not in server.log
    } == set()
    assert token not in server.log
    assert stream.session not in server.log
