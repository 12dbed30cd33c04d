"""Parts of the tests of the node: subscribe, publish, lose publications on the way."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.config.options import ChannelOptions
from realtime.errors import Disconnect
from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.protocol.messages import Publication
from tests.server import SECRET
from tests.unit.parts import Clock, RecordingClient, data, turns

PLAIN = ChannelOptions()
HISTORY = ChannelOptions(history_size=100, history_lifetime=1000)
RECOVERABLE = ChannelOptions(history_size=100, history_lifetime=1000, history_recover=True)

EVERYTHING = {
    "token_hmac_secret_key": SECRET,
    "v3_use_offset": True,
    "presence": True,
    "join_leave": True,
    "history_size": 10,
    "history_lifetime": 300,
    "history_recover": True,
}
"""Options with which clients connect by token and channels have all there is."""


async def subscribe(
    node: Node,
    client: RecordingClient,
    options: ChannelOptions,
    channel: str = "a",
    *,
    visible: bool = True,
) -> RecordingClient:
    """Subscribe as a client does, that has everything up to the position of now. Return it."""
    info = client.info_in(channel)
    if options.history_recover:
        client.positioned.add(channel)
    await node.subscriptions.add(channel, client, options, info, visible=visible)
    node.hub.feeds[channel].release(client)
    return client


async def publish(node: Node, options: ChannelOptions, value: int, channel: str = "a") -> None:
    await node.publish(channel, data(str(value)), options)


async def lose(node: Node, options: ChannelOptions, value: int, channel: str = "a") -> Publication:
    """Publish something that does not arrive at this node."""
    await node.broker.unsubscribe(channel)
    await publish(node, options, value, channel)
    await node.broker.subscribe(channel)
    return (await node.broker.history(channel)).publications[-1]


def published(client: RecordingClient) -> list[object]:
    """The data of the publications pushed to a client."""
    results = [json.loads(message)["result"] for message in client.pushed]
    return [result["data"]["data"] for result in results if "type" not in result]


async def stop(node: Node, clock: Clock, seconds: float) -> None:
    """Stop a node, and let so much time pass that it may take."""
    stopping = asyncio.create_task(node.stop())
    await turns(1)  # its time begins before the clock moves
    until = clock.now + seconds
    while not stopping.done() and clock.now < until:
        await clock.advance(min(0.05, until - clock.now))
    await turns(50)  # what is due at the very end takes some steps, and no time
    assert stopping.done(), f"the node did not end within {seconds} seconds"
    await stopping


class OpenedClient(RecordingClient):
    """A client with an open transport, which a node closes when it stops."""

    def __init__(self, node: Node, client_id: str = "C") -> None:
        super().__init__(client_id)
        self._node = node
        node.opened(self)

    def close(self, disconnect: Disconnect | None) -> None:
        super().close(disconnect)
        self._node.closed(self)


class Connection:
    """A client on a transport that keeps what is sent."""

    name = "websocket"
    session = ""
    ends_with_push = False

    def __init__(self, node: Node) -> None:
        self.ready = True
        self.backlog = 0
        """Bytes that the peer has not read, for tests to set."""
        self.messages: list[dict[str, Any]] = []
        self.closes: list[int] = []
        self.client = Client(node, self, node.codecs.json)
        self.dispatcher = Dispatcher(self.client)

    def send(self, frame: Frame) -> int:
        self.messages.extend(json.loads(line) for line in frame.data.splitlines())
        return self.backlog

    async def close(self, code: int, reason: str) -> None:
        self.closes.append(code)

    def closed(self) -> None:
        pass

    def say(self, command_id: int, method: int, **params: Any) -> asyncio.Task[None]:
        """Begin a command."""
        command = {"id": command_id, "method": method, "params": params}
        return asyncio.create_task(self.dispatcher.receive(json.dumps(command).encode()))

    def subscribe(self, channel: str = "a") -> asyncio.Task[None]:
        """Begin to subscribe."""
        return self.say(2, 1, channel=channel)

    def reply(self, command_id: int) -> dict[str, Any] | None:
        """The reply to a command, if it has come."""
        return next((m for m in self.messages if m.get("id") == command_id), None)

    @property
    def pushes(self) -> list[dict[str, Any]]:
        """The pushes but for joins and leaves, in order."""
        results = [message["result"] for message in self.messages if "id" not in message]
        return [push for push in results if push.get("type") not in (1, 2)]
