"""What happens to a client that has no reply to connect yet: the reply comes first."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from realtime.cluster.control import RefreshSome
from realtime.node.node import Node
from tests.conftest import connection_token
from tests.unit.clients.second_parts import SecondConnection, publish
from tests.unit.node.node_parts import Connection
from tests.unit.parts import turns
from tests.unit.suspended_engine import SuspendedEngine

TTL = 100


class Connecting:
    """A client whose connect waits for the engine, with one server-side channel."""

    def __init__(self, node: Node, engine: SuspendedEngine, generation: int) -> None:
        self._engine = engine
        self.connection = SecondConnection(node) if generation == 2 else Connection(node)
        token = connection_token("17", channels=["a"], ttl=TTL)
        command = {"connect": {"token": token}} if generation == 2 else {"params": {"token": token}}
        engine.hold("position")
        self._command = asyncio.create_task(self._send({"id": 1} | command))

    async def _send(self, command: dict[str, Any]) -> None:
        await self.connection.dispatcher.receive(json.dumps(command).encode())

    async def answered(self) -> list[dict[str, Any]]:
        """Let the engine go on; returns what the client has got by then."""
        self._engine.go_on("position")
        await self._command
        await turns()
        return self.connection.messages


@pytest.fixture(params=[1, 2], ids=["first generation", "second generation"])
async def connecting(
    request: pytest.FixtureRequest, node: Node, engine: SuspendedEngine
) -> Connecting:
    made = Connecting(node, engine, request.param)
    await engine.reached("position")
    return made


@pytest.mark.parametrize("channel", ["b", ""], ids=["another channel", "every channel"])
async def test_unsubscribe_does_not_overtake_the_reply(
    node: Node, connecting: Connecting, channel: str
) -> None:
    await node.unsubscribe_user("17", channel)
    await turns()
    assert connecting.connection.messages == []
    messages = await connecting.answered()
    assert messages[0]["id"] == 1


async def test_refresh_does_not_overtake_the_reply_which_tells_the_new_expiry(
    node: Node, connecting: Connecting
) -> None:
    await node.send_control(RefreshSome(user="17", expires_at=time.time() + 10 * TTL))
    await turns()
    assert connecting.connection.messages == []
    reply = (await connecting.answered())[0]
    result = reply.get("connect") or reply["result"]
    assert 9 * TTL < result["ttl"] <= 10 * TTL


async def test_refresh_without_an_end_is_told_by_the_reply(
    node: Node, connecting: Connecting
) -> None:
    await node.send_control(RefreshSome(user="17", expires_at=None))
    reply = (await connecting.answered())[0]
    assert "expires" not in (reply.get("connect") or reply["result"])


async def test_publications_of_a_server_side_channel_follow_the_reply(
    node: Node, connecting: Connecting
) -> None:
    await publish(node, "a", 1)
    assert connecting.connection.messages == []
    first, *rest = await connecting.answered()
    assert first["id"] == 1
    assert any("1" in json.dumps(message) for message in rest)
