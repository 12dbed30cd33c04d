"""Applications that daphne cancels when it stops."""

from __future__ import annotations

import asyncio
from typing import Any

from daphne.server import Server

from realtime.transports.asgi import Receive, Scope, Send
from realtime.transports.servers import daphne_install


async def test_application_of_a_connection_that_is_just_opening_begins_before_it_is_cancelled() -> (
    None
):
    steps: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        steps.append((await receive())["type"])
        try:
            await receive()
        except asyncio.CancelledError:
            steps.append("cancelled")

    server: Any = Server(application, endpoints=["never opened"])
    server.connections = {}
    connection = object()
    server.protocol_connected(connection)
    server.create_application(connection, {"type": "websocket"}).put_nowait(
        {"type": "websocket.connect"}
    )

    killing: Any = daphne_install.stop_before(Server.kill_all_applications)(server)
    await killing.asFuture(asyncio.get_running_loop())

    assert steps == ["websocket.connect", "cancelled"]
