"""What the tests of the node share: subscribing, publishing, losing something on the way."""

from __future__ import annotations

import json

from realtime.node import Node
from realtime.options import ChannelOptions
from realtime.protocol.messages import Publication
from tests.unit.parts import RecordingClient, data

PLAIN = ChannelOptions()
HISTORY = ChannelOptions(history_size=100, history_lifetime=1000)
RECOVERABLE = ChannelOptions(history_size=100, history_lifetime=1000, history_recover=True)


async def subscribe(
    node: Node, client: RecordingClient, options: ChannelOptions, channel: str = "a"
) -> None:
    """Subscribe as a client does, that has everything up to the position of now."""
    await node.add_subscription(channel, client, options, client.info_in(channel))
    node.release(channel, client)


async def publish(node: Node, options: ChannelOptions, value: int, channel: str = "a") -> None:
    await node.publish(channel, data(str(value)), options)


async def lose(node: Node, options: ChannelOptions, value: int, channel: str = "a") -> Publication:
    """Publish something that does not arrive at this node."""
    await node.engine.unsubscribe(channel)
    await publish(node, options, value, channel)
    await node.engine.subscribe(channel)
    return (await node.engine.history(channel)).publications[-1]


def published(client: RecordingClient) -> list[object]:
    """The data of the publications pushed to a client."""
    results = [json.loads(message)["result"] for message in client.pushed]
    return [result["data"]["data"] for result in results if "type" not in result]
