"""The server and the client of PyPI's `mcp`, with events that a channel keeps."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import jsonrpc_message_adapter

from realtime.answers.mcp import EventStore
from realtime.errors import EngineUnavailable
from tests.server import TIMEOUT

pytestmark = pytest.mark.usefixtures("over_redis")


def message(number: int) -> Any:
    """An answer of a server."""
    return jsonrpc_message_adapter.validate_python(
        {"jsonrpc": "2.0", "id": number, "result": {"number": number, "nothing": None}}
    )


async def in_session(store: EventStore, session: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """Do something as a request of a session does it; the session begins with its first one."""
    found: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(await work())
        headers = [(b"mcp-session-id", session.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send(event: Any) -> None:
        pass

    known = session.encode() in store._sessions
    headers = [(b"mcp-session-id", session.encode())] if known else []
    scope = {"type": "http", "headers": headers}
    await asyncio.create_task(store.wrap(app)(scope, None, send))
    return found[0]


async def stored(store: EventStore, session: str, stream: str, what: Any) -> str:
    event_id: str = await in_session(store, session, lambda: store.store_event(stream, what))
    return event_id


async def replayed(store: EventStore, session: str, event_id: str) -> tuple[str | None, list[Any]]:
    """The stream that follows an event, and its events."""
    events: list[Any] = []

    async def take(event: Any) -> None:
        events.append(event)

    stream = await in_session(store, session, lambda: store.replay_events_after(event_id, take))
    return stream, events


async def test_stream_goes_on_after_an_event_without_those_of_others() -> None:
    store = EventStore()
    begin = await stored(store, "a", "1", None)
    first = await stored(store, "a", "1", message(1))
    await stored(store, "a", "2", message(2))
    last = await stored(store, "a", "1", message(3))

    stream, events = await replayed(store, "a", begin)
    assert (stream, [each.event_id for each in events]) == ("1", [first, last])
    assert [each.message for each in events] == [message(1), message(3)]
    assert await replayed(store, "a", last) == ("1", [])


async def test_event_id_of_another_session_finds_nothing_of_either() -> None:
    store = EventStore()
    mine = await stored(store, "a", "1", None)
    await stored(store, "a", "1", message(1))
    await stored(store, "b", "7", None)

    assert await replayed(store, "b", mine) == (None, [])
    assert await replayed(store, "stranger", mine) == (None, [])


@pytest.mark.parametrize(
    "event_id", ["", "x", "1", "0.e", "-1.e", "1.e", "9" * 30 + ".e", "1.", "\0"]
)
async def test_event_ids_that_were_never_given_find_nothing(event_id: str) -> None:
    store = EventStore()
    await stored(store, "a", "1", message(1))
    assert await replayed(store, "a", event_id) == (None, [])


async def test_server_that_is_not_wrapped_keeps_nothing() -> None:
    with pytest.raises(LookupError):
        await EventStore().store_event("1", message(1))


async def test_stream_that_lacks_an_event_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> None:
        raise EngineUnavailable("away")

    store = EventStore()
    begin = await stored(store, "a", "1", None)
    with monkeypatch.context() as patch:
        patch.setattr("realtime.answers.mcp.apublish", away)
        assert await stored(store, "a", "1", message(1)) == ""
    await stored(store, "a", "1", message(2))
    assert await replayed(store, "a", begin) == (None, [])


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an application on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


async def test_client_gets_the_result_of_a_call_whose_connection_was_closed() -> None:
    is_stored = asyncio.Event()
    server = MCPServer("weather")

    @server.tool()
    async def look(city: str, context: Context) -> str:
        await context.report_progress(1, 2)
        await context.close_sse_stream()
        await context.report_progress(2, 2)
        return f"{city} is blue"

    class Watched(EventStore):
        async def store_event(self, stream_id: str, message: Any) -> str:
            event_id = await super().store_event(stream_id, message)
            if "Rome is blue" in str(message):
                is_stored.set()
            return event_id

    store: Any = Watched()
    app = store.wrap(server.streamable_http_app(event_store=store, retry_interval=50))
    seen: list[str] = []
    done: list[float] = []

    async def take(progress: float, total: float | None, message: str | None) -> None:
        done.append(progress)

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        last = dict(scope.get("headers", ())).get(b"last-event-id")
        if last:
            seen.append(last.decode())
            async with asyncio.timeout(TIMEOUT):
                await is_stored.wait()
        await app(scope, receive, send)

    async with (
        serving(counting) as address,
        httpx2.AsyncClient(trust_env=False, timeout=TIMEOUT) as http,
        streamable_http_client(address, http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        result = await session.call_tool("look", {"city": "Rome"}, progress_callback=take)
    assert result.model_dump()["content"][0]["text"] == "Rome is blue"
    assert (done, len(seen)) == ([1, 2], 1)
