"""uvicorn's WebSockets whose handshake is plain: nothing differs for applications and clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from realtime.transports.asgi import Event, Receive, Scope, Send
from realtime.transports.servers import uvicorn_connections
from tests.unit.parts import eventually
from tests.unit.transports.client_frames import HEAD, TEXT, any_frames, client_frame, is_ours, told
from tests.unit.transports.uvicorn_servers import UvicornServer, open_server

LIMIT = 100


class Site:
    """An application that notes what it gets. A test sends with its `send`."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.events: list[Event] = []
        self.send: Send | None = None
        self.client: tuple[str, int] | None = None
        self.first: Event = {"type": "websocket.accept", "subprotocol": "spoken"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        scope["client"] = self.client or scope["client"]  # as middleware for proxies does
        self.events = [await receive()]
        await send(self.first)
        self.send = send
        while self.events[-1]["type"] != "websocket.disconnect":
            self.events.append(await receive())


@pytest.fixture
async def site() -> Site:
    return Site()


@pytest.fixture(params=["h11", "httptools"])
async def connections(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[UvicornServer]:
    options = {"http": request.param, "ws": "websockets-sansio", "ws_max_size": LIMIT}
    async with open_server(site, is_ours, **options) as server:
        yield server


Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def open_peer(connections: UvicornServer, head: bytes = b"") -> Peer:
    """A connection to uvicorn, on which a head was sent."""
    reader, writer = await asyncio.open_connection(*connections.address)
    writer.write(head)
    return reader, writer


async def answer(peer: Peer) -> dict[str, str]:
    """The response to a handshake: status and headers, without the date."""
    head = (await peer[0].readuntil(b"\r\n\r\n")).decode()
    status, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return {"status": status, **headers}


async def test_uvicorn_s_application_and_client_see_no_difference(
    connections: UvicornServer, site: Site
) -> None:
    plain = await open_peer(connections, HEAD)
    of_plain = await answer(plain)
    [ours] = connections.open_sockets()
    assert ours._is_plain
    other = await open_peer(connections, HEAD.replace(b"Host: ", b"Host:"))
    of_other = await answer(other)

    assert of_plain == of_other
    assert of_plain["sec-websocket-protocol"] == "spoken"
    assert told(site.scopes[0]) == told(site.scopes[1])
    for _, writer in (plain, other):
        writer.close()


async def test_uvicorn_s_log_names_the_client_behind_a_proxy(
    connections: UvicornServer, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "uvicorn.error")
    site.client = ("192.0.2.1", 0)

    for head in (HEAD, HEAD.replace(b"Host: ", b"Host:")):
        peer = await open_peer(connections, head)
        await answer(peer)
        peer[1].close()

    [of_plain, of_other] = [each for each in caplog.messages if "[accepted]" in each]
    assert of_plain == of_other
    assert of_plain.startswith("192.0.2.1:0 ")


async def test_uvicorn_opens_sockets_of_the_site_itself(
    connections: UvicornServer, site: Site
) -> None:
    peer = await open_peer(connections, HEAD.replace(b"/ours", b"/site"))
    assert (await answer(peer))["status"].endswith("101 Switching Protocols")
    [theirs] = connections.open_sockets()
    assert not theirs._is_plain
    peer[1].close()


@any_frames
async def test_uvicorn_s_application_gets_every_message(
    connections: UvicornServer, site: Site, sent: list[bytes], expected: list[str | bytes]
) -> None:
    reader, writer = await open_peer(connections, HEAD)
    await reader.readuntil(b"\r\n\r\n")
    [ours] = connections.open_sockets()
    for part in sent:
        ours.data_received(part)
    await eventually(lambda: len(site.events) > len(expected))
    assert [event.get("text", event.get("bytes")) for event in site.events[1:]] == expected
    writer.close()


async def test_uvicorn_closes_for_what_the_package_websockets_refuses(
    connections: UvicornServer, site: Site
) -> None:
    for wrong, code in (
        (client_frame(0x81, b"a" * (LIMIT + 1)), 1009),
        (client_frame(0x81, b"\xff"), 1007),
        (client_frame(0x80, b"text"), 1002),
        (b"\x81\x04text", 1002),
    ):
        peer = await open_peer(connections, HEAD)
        await peer[0].readuntil(b"\r\n\r\n")

        peer[1].write(TEXT)
        peer[1].write(wrong)

        closing = await peer[0].read()
        assert closing[0] == 0x88
        assert int.from_bytes(closing[2:4]) == code
        peer[1].close()


@pytest.mark.parametrize(
    ("first", "status"),
    [
        ({"type": "websocket.close"}, "403"),
        ({"type": "websocket.http.response.start", "status": 418, "headers": []}, "418"),
    ],
)
async def test_uvicorn_refuses_where_the_application_refuses(
    connections: UvicornServer, site: Site, first: Event, status: str
) -> None:
    site.first = first
    peer = await open_peer(connections, HEAD)
    await eventually(lambda: site.send is not None)
    assert site.send is not None
    if status == "418":
        await site.send({"type": "websocket.http.response.body", "body": b"no"})
    assert (await answer(peer))["status"].split()[1] == status
    peer[1].close()


@pytest.mark.parametrize("name", ["close_sent", "queue", "read_paused"])
async def test_version_of_uvicorn_without_a_name_that_is_needed_reads_all_itself(name: str) -> None:
    class Other(WebSocketsSansIOProtocol):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            delattr(self, name)

        async def receive(self) -> Any:
            return "its own"

    config: Any = Config(Site(), ws="websockets-sansio", log_config=None)
    options: Any = {"config": config, "server_state": ServerState(), "app_state": {}}
    kind: Any = type("Freed", (uvicorn_connections.FreedSocket, Other), {})
    fitting: Any = type("Freed", (uvicorn_connections.FreedSocket, WebSocketsSansIOProtocol), {})

    assert fitting(**options).fits()
    assert not kind(**options).fits()
    assert await kind(**options).receive() == "its own"
