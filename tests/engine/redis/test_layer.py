"""RedisChannelLayer is a channel layer: consumers work with it as with the stock one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import channel_layers
from channels.testing import WebsocketCommunicator
from channels_redis.pubsub import RedisPubSubChannelLayer

from realtime.engine.redis.layer import RedisChannelLayer
from tests.engine.bench import comes_true
from tests.engine.redis.layers import receive
from tests.redis_server import RedisServer

BACKENDS: dict[str, Callable[..., Any]] = {
    "ours": RedisChannelLayer,
    "stock": RedisPubSubChannelLayer,
}

OpenLayer = Callable[..., Any]


@pytest.fixture(params=["ours", "ours-shards", "stock"])
def layer(request: pytest.FixtureRequest, open_layer: OpenLayer) -> Any:
    """Our layer, and the stock one, which has to pass the same tests."""
    backend, _, shards = request.param.partition("-")
    return open_layer(BACKENDS[backend], shards=2 if shards else 1)


# channels


async def test_messages_of_one_channel_are_received_in_their_order(layer: Any, unique: str) -> None:
    channel, other = await layer.new_channel(), await layer.new_channel()
    message = {"type": "test.message", "text": "é", "bytes": [1, 2.5, None, True], "map": {"a": 1}}
    assert channel.startswith(unique)
    assert channel != other
    await layer.group_discard("group", other)  # it is not in it

    for number in range(50):
        await layer.send(channel, message | {"number": number})

    for number in range(50):
        assert await receive(layer, channel) == message | {"number": number}


async def test_channel_that_is_not_specific_receives_too(layer: Any, unique: str) -> None:
    """As background workers use it."""
    receiving = asyncio.create_task(receive(layer, f"{unique}-thumbnails"))

    async def received() -> bool:
        await layer.send(f"{unique}-thumbnails", {"type": "test"})  # there is no reply to wait for
        return receiving.done()

    await comes_true(received)
    assert receiving.result() == {"type": "test"}


async def test_receiver_that_is_cancelled_gives_its_channel_up(
    layer: Any, redis_servers: list[RedisServer]
) -> None:
    channel = await layer.new_channel()
    receiving = asyncio.create_task(layer.receive(channel))

    def subscribed() -> bool:
        return any(channel in server.pubsub_channels() for server in redis_servers)

    assert subscribed()
    await asyncio.sleep(0)
    receiving.cancel()
    await asyncio.wait([receiving])

    async def given_up() -> bool:
        return not subscribed()

    await comes_true(given_up)


# groups


async def test_group_reaches_all_its_channels_and_no_other(layer: Any) -> None:
    one, two, left, outside = channels = [await layer.new_channel() for _ in range(4)]
    for channel in (one, two, left):
        await layer.group_add("group", channel)

    await layer.group_discard("group", left)
    await layer.group_send("group", {"type": "test", "to": "group"})
    for channel in (left, outside):
        await layer.send(channel, {"type": "test", "to": "it alone"})

    received = [(await receive(layer, channel))["to"] for channel in channels]
    assert received == ["group", "group", "it alone", "it alone"]


async def test_group_without_members_is_not_subscribed_to(
    layer: Any, redis_servers: list[RedisServer], unique: str
) -> None:
    channel = await layer.new_channel()
    await layer.group_add("group", channel)

    def subscribed() -> bool:
        channels = set[str]().union(*(server.pubsub_channels() for server in redis_servers))
        return f"{unique}__group__group" in channels

    assert subscribed()
    await layer.group_discard("group", channel)

    async def given_up() -> bool:
        return not subscribed()

    await comes_true(given_up)


async def test_only_channels_of_this_process_may_join_groups(layer: Any) -> None:
    with pytest.raises(RuntimeError):
        await layer.group_add("group", "somewhere.else")


@pytest.mark.parametrize("sender", BACKENDS)
@pytest.mark.parametrize("receiver", BACKENDS)
async def test_layers_of_both_kinds_understand_each_other(
    open_layer: OpenLayer, sender: str, receiver: str
) -> None:
    """While a site changes from one to the other, both run."""
    sending, receiving = open_layer(BACKENDS[sender]), open_layer(BACKENDS[receiver])
    channel = await receiving.new_channel()
    await receiving.group_add("group", channel)

    await sending.group_send("group", {"type": "test", "by": "group"})
    assert await receive(receiving, channel) == {"type": "test", "by": "group"}

    await sending.send(channel, {"type": "test", "by": "name"})
    assert await receive(receiving, channel) == {"type": "test", "by": "name"}


async def test_group_that_has_a_member_is_joined_without_redis(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    layer = RedisChannelLayer(hosts=[server.url], prefix=unique, timeout=1.5)
    member, late = [await layer.new_channel() for _ in range(2)]
    await layer.group_add("group", member)
    server.freeze()
    await layer.group_add("group", late)
    server.resume()

    await layer.group_send("group", {"type": "test", "number": 1})

    for channel in (member, late):
        assert (await receive(layer, channel))["number"] == 1
    await layer.flush()


# loops and connections


async def test_flushed_layer_is_like_new(layer: Any, redis_servers: list[RedisServer]) -> None:
    old = await layer.new_channel()
    await layer.group_add("group", old)
    await layer.group_send("group", {"type": "test", "number": 1})

    await layer.flush()
    assert not any(old in server.pubsub_channels() for server in redis_servers)

    new = await layer.new_channel()
    await layer.group_add("group", new)
    await layer.group_send("group", {"type": "test", "number": 2})
    assert (await receive(layer, new))["number"] == 2


async def test_each_event_loop_sends_and_receives_through_the_same_layer(layer: Any) -> None:
    here = await layer.new_channel()
    await layer.group_add("group", here)

    async def elsewhere() -> Any:
        there = await layer.new_channel()
        await layer.group_add("group", there)
        await layer.group_send("group", {"type": "test", "from": "there"})
        assert (await receive(layer, there))["from"] == "there"
        await layer.send(here, {"type": "test", "channel": there})
        return await receive(layer, there)

    other_loop = asyncio.create_task(asyncio.to_thread(asyncio.run, elsewhere()))
    assert (await receive(layer, here))["from"] == "there"
    there = (await receive(layer, here))["channel"]
    await layer.group_send("group", {"type": "test", "from": "here"})

    assert (await other_loop)["from"] == "here"
    assert there != here


async def test_loop_that_ended_leaves_no_connection(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    layer = RedisChannelLayer(hosts=[server.url], prefix=unique)

    async def use() -> None:
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "test"})
        await layer.receive(channel)

    for _ in range(3):
        await asyncio.to_thread(asyncio.run, use())

    async def only_the_one_that_asks() -> bool:
        with server.client() as client:
            return len(client.client_list()) == 1

    await comes_true(only_the_one_that_asks)


# an ordinary consumer


class ChatConsumer(AsyncJsonWebsocketConsumer):
    """As the tutorial of Channels has it; knows nothing of the service."""

    async def connect(self) -> None:
        await self.channel_layer.group_add("chat", self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard("chat", self.channel_name)

    async def receive_json(self, content: Any, **_: Any) -> None:
        await self.channel_layer.group_send("chat", {"type": "chat.message", "text": content})

    async def chat_message(self, event: Any) -> None:
        await self.send_json(event["text"])


@pytest.fixture
def site_layer(layer: Any) -> Iterator[Any]:
    """The layer, as the site's own."""
    before = channel_layers.set("default", layer)
    yield layer
    channel_layers.set("default", before)


async def test_ordinary_consumers_talk_to_each_other(
    site_layer: Any, redis_servers: list[RedisServer], unique: str
) -> None:
    sockets = [WebsocketCommunicator(ChatConsumer.as_asgi(), "/chat") for _ in range(3)]
    for socket in sockets:
        assert (await socket.connect(timeout=20))[0]

    await sockets[0].send_json_to({"hello": [1, "é"]})

    for socket in sockets:
        assert await socket.receive_json_from(timeout=10) == {"hello": [1, "é"]}
        await socket.disconnect(timeout=20)

    async def nothing_is_subscribed() -> bool:
        channels = set[str]().union(*(server.pubsub_channels() for server in redis_servers))
        return not any(channel.startswith(unique) for channel in channels)

    await comes_true(nothing_is_subscribed)
