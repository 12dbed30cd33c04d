"""RedisBus: publishing in one round trip, from event loops and from threads without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import redis
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import channel_layers
from channels.testing import WebsocketCommunicator

from realtime.engine.base import Outgoing, Published
from realtime.engine.redis.bus import RedisNodeBus
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.group_message import GroupMessage, StreamSettings
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.engine.redis.redis_bus import RedisBus
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication
from tests.engine.bench import KEPT, RecordingReceiver
from tests.redis_server import RedisServer
from tests.unit.parts import data, eventually

OpenLayer = Callable[..., RedisChannelLayer]


@pytest.fixture
async def open_layer(redis_servers: list[RedisServer], unique: str) -> AsyncIterator[OpenLayer]:
    """A layer with a prefix of this test's own: `open_layer(hosts=[...])`."""
    layers: list[RedisChannelLayer] = []

    def make(**options: Any) -> RedisChannelLayer:
        options = {"hosts": [redis_servers[0].url], "prefix": unique} | options
        layers.append(RedisChannelLayer(**options))
        return layers[-1]

    yield make
    for layer in layers:
        await layer.close()
        layer.bus.close_blocking()


@pytest.fixture(params=["one Redis", "shards"])
def layer(
    request: pytest.FixtureRequest, open_layer: OpenLayer, redis_servers: list[RedisServer]
) -> RedisChannelLayer:
    """Our layer over one Redis, and over two."""
    servers = redis_servers if request.param == "shards" else redis_servers[:1]
    return open_layer(hosts=[server.url for server in servers])


def message(layer: RedisChannelLayer, group: str, *, kept: int = 100, **more: Any) -> GroupMessage:
    """A message with a stream of its group's own; `kept=0`: without."""
    stream = StreamSettings(Keys(layer.prefix).stream(group), kept, 100) if kept else None
    return GroupMessage(group, {"type": "chat.message", **more}, stream)


async def receive(layer: RedisChannelLayer, channel: str) -> Any:
    async with asyncio.timeout(10):
        return await layer.receive(channel)


async def in_group(layer: RedisChannelLayer, group: str) -> str:
    """A channel in a group."""
    channel: str = await layer.new_channel()
    await layer.group_add(group, channel)
    return channel


Publish = Callable[[RedisBus, GroupMessage], Awaitable[Published]]
PUBLISH: dict[str, Publish] = {
    "on a loop": lambda bus, message: bus.publish(message),
    "blocking": lambda bus, message: asyncio.to_thread(bus.publish_blocking, message),
}
PUBLISH_MANY: dict[str, Callable[..., Awaitable[list[Published | EngineUnavailable]]]] = {
    "on a loop": lambda bus, many: bus.publish_many(many),
    "blocking": lambda bus, many: asyncio.to_thread(bus.publish_many_blocking, many),
}


# one


@pytest.mark.parametrize("way", PUBLISH)
async def test_numbered_message_arrives_with_its_position(
    layer: RedisChannelLayer, way: str
) -> None:
    channel = await in_group(layer, "group")

    positions = [
        (await PUBLISH[way](layer.bus, message(layer, "group", text=f"é{number}"))).position
        for number in range(2)
    ]

    for number, position in enumerate(positions):
        assert position is not None
        assert position.offset == number + 1
        assert await receive(layer, channel) == {
            "type": "chat.message",
            "text": f"é{number}",
            "offset": number + 1,
            "epoch": position.epoch,
        }


@pytest.mark.parametrize("way", PUBLISH)
async def test_message_without_stream_arrives_as_it_is(layer: RedisChannelLayer, way: str) -> None:
    channel = await in_group(layer, "group")

    sent = await PUBLISH[way](layer.bus, message(layer, "group", kept=0, text="hi"))
    assert sent == Published()

    assert await receive(layer, channel) == {"type": "chat.message", "text": "hi"}


@pytest.mark.parametrize("way", PUBLISH)
async def test_message_that_is_only_kept_is_not_sent(layer: RedisChannelLayer, way: str) -> None:
    channel = await in_group(layer, "group")
    kept = message(layer, "group", text="kept")._replace(send=False)

    position = (await PUBLISH[way](layer.bus, kept)).position
    await PUBLISH[way](layer.bus, message(layer, "group", text="sent"))

    assert position is not None
    assert position.offset == 1
    received = await receive(layer, channel)
    assert (received["text"], received["offset"]) == ("sent", 2)


async def test_both_ways_number_together(layer: RedisChannelLayer) -> None:
    positions = []
    for way in [*PUBLISH, *PUBLISH]:
        positions.append((await PUBLISH[way](layer.bus, message(layer, "group"))).position)

    assert [position.offset for position in positions if position] == [1, 2, 3, 4]
    assert len({position.epoch for position in positions if position}) == 1


# several


@pytest.mark.parametrize("way", PUBLISH_MANY)
async def test_several_messages_are_numbered_in_their_order(
    layer: RedisChannelLayer, way: str
) -> None:
    groups = ["a", "b", "c", "d"]
    channels = {group: await in_group(layer, group) for group in groups}
    many = [
        message(layer, groups[number % 4], kept=0 if number % 4 == 3 else 100, number=number)
        for number in range(40)
    ]

    results = await PUBLISH_MANY[way](layer.bus, many)

    positions = [result.position for result in results if isinstance(result, Published)]
    offsets = [position and position.offset for position in positions]
    assert offsets == [None if number % 4 == 3 else number // 4 + 1 for number in range(40)]
    for index, group in enumerate(groups):
        numbers = [(await receive(layer, channels[group]))["number"] for _ in range(10)]
        assert numbers == [*range(index, 40, 4)]


@pytest.mark.parametrize("way", PUBLISH_MANY)
async def test_empty_list_of_messages_has_no_results(layer: RedisChannelLayer, way: str) -> None:
    assert await PUBLISH_MANY[way](layer.bus, []) == []


@pytest.mark.parametrize("way", PUBLISH_MANY)
async def test_shard_that_is_away_fails_its_own_messages_only(
    own_redis: Callable[..., RedisServer], open_layer: OpenLayer, way: str
) -> None:
    servers = [own_redis(), own_redis()]
    layer = open_layer(hosts=[server.url for server in servers])
    many = [message(layer, f"group{number}") for number in range(20)]
    there = [layer.bus.shard(entry.group) == 0 for entry in many]
    assert 0 < sum(there) < 20
    servers[1].kill()

    results = await PUBLISH_MANY[way](layer.bus, many)

    assert [isinstance(result, Published) for result in results] == there
    assert [isinstance(result, EngineUnavailable) for result in results] == [
        not here for here in there
    ]


@pytest.mark.parametrize("way", PUBLISH)
async def test_publishing_fails_in_time_when_redis_hangs(
    own_redis: Callable[..., RedisServer], open_layer: OpenLayer, way: str
) -> None:
    server = own_redis()
    layer = open_layer(hosts=[server.url], timeout=1.5, connect_timeout=1.5)
    await PUBLISH[way](layer.bus, message(layer, "group"))
    server.freeze()

    with pytest.raises(EngineUnavailable):
        async with asyncio.timeout(15):
            await PUBLISH[way](layer.bus, message(layer, "group"))

    server.resume()


async def test_group_that_could_not_be_joined_is_not_kept(
    own_redis: Callable[..., RedisServer], open_layer: OpenLayer
) -> None:
    server = own_redis()
    layer = open_layer(hosts=[server.url], timeout=1.5, connect_timeout=1.5)
    channel = await in_group(layer, "before")
    server.freeze()

    with pytest.raises(EngineUnavailable):
        await layer.group_add("group", channel)

    server.resume()
    await layer.group_add("after", channel)  # Redis answers again
    await eventually(lambda: f"{layer.prefix}__group__group" not in server.pubsub_channels())
    await layer.bus.publish(message(layer, "group", text="not for us"))
    await layer.bus.publish(message(layer, "after", text="for us"))
    assert (await receive(layer, channel))["text"] == "for us"


# an ordinary consumer


class ChatConsumer(AsyncJsonWebsocketConsumer):
    """An ordinary consumer that sends what it receives to its client."""

    async def connect(self) -> None:
        await self.channel_layer.group_add("chat", self.channel_name)
        await self.accept()

    async def chat_message(self, event: Any) -> None:
        await self.send_json(event)


async def test_numbered_message_reaches_an_ordinary_consumer_in_the_group(
    layer: RedisChannelLayer,
) -> None:
    before = channel_layers.set("default", layer)
    try:
        socket = WebsocketCommunicator(ChatConsumer.as_asgi(), "/chat")
        assert (await socket.connect())[0]

        position = (await layer.bus.publish(message(layer, "chat", text="hi"))).position

        assert position is not None
        assert await socket.receive_json_from(timeout=10) == {
            "type": "chat.message",
            "text": "hi",
            "offset": 1,
            "epoch": position.epoch,
        }
        await socket.disconnect()
    finally:
        channel_layers.set("default", before)


# what can be seen in Redis

SECRET = "a word to be hidden"


def contents(client: redis.Redis, prefix: str) -> bytes:
    """All that is kept below a prefix, values only."""
    values: list[Any] = []
    for key in client.scan_iter(f"{prefix}*"):
        match client.type(key):
            case b"stream":
                values.append(client.xrange(key))
            case b"hash":
                values.append(client.hgetall(key))
            case b"zset":
                values.append(client.zrange(key, 0, -1))
            case b"set":
                values.append(client.smembers(key))
            case _:
                values.append(client.get(key))
    return repr(values).encode()


async def use_service(layer: RedisChannelLayer, server: RedisServer) -> tuple[bytes, bytes]:
    """Have an engine keep and send secrets; return what Redis keeps, and what it passed on."""
    engine = RedisEngine(RedisNodeBus(layer.bus), layer.prefix)
    receiver = RecordingReceiver()
    await engine.start(receiver)
    info = ClientInfo(SECRET, "C", data(f'"{SECRET}"'), data(f'"{SECRET}"'))
    publication = Publication(data(f'"{SECRET}"'), info)
    with server.client() as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.psubscribe(f"{layer.prefix}*")
        pubsub.get_message(timeout=5)  # confirmed
        await engine.broker.subscribe("c")
        await engine.broker.publish(Outgoing("c", publication, KEPT))
        await engine.broker.join("c", info)
        await engine.broker.leave("c", info)
        await engine.presence.add("c", [info], 100)
        await eventually(lambda: bool(receiver.leaves["c"]))
        passed = [pubsub.get_message(timeout=5) for _ in range(3)]

        assert [p.data for p, _ in receiver.publications["c"]] == [publication.data]
        assert [p.info for p in (await engine.broker.history("c")).publications] == [info]
        assert dict(await engine.presence.get("c")) == {"C": info}
        assert receiver.joins["c"] == receiver.leaves["c"] == [info]
        kept = contents(client, layer.prefix)
    await engine.stop()
    assert None not in passed
    return kept, repr([each["data"] for each in passed]).encode()


async def test_encrypting_layer_hides_data_and_client_infos(
    open_layer: OpenLayer, redis_server: RedisServer
) -> None:
    layer = open_layer(symmetric_encryption_keys=["a key", "an old key"])

    kept, passed = await use_service(layer, redis_server)

    assert SECRET.encode() not in kept
    assert SECRET.encode() not in passed


@pytest.mark.parametrize("serializer_format", ["msgpack", "json"])
async def test_layer_without_keys_hides_neither(
    open_layer: OpenLayer, redis_server: RedisServer, serializer_format: str
) -> None:
    """So the test above looks in the right places."""
    layer = open_layer(serializer_format=serializer_format)

    kept, passed = await use_service(layer, redis_server)

    assert kept.count(SECRET.encode()) == 4 + 3  # publication with its info, presence
    assert passed.count(SECRET.encode()) == 4 + 3 + 3


async def test_key_that_was_replaced_still_opens_what_it_closed(open_layer: OpenLayer) -> None:
    receiving = open_layer(symmetric_encryption_keys=["new", "old"])
    channel = await in_group(receiving, "group")
    old = open_layer(symmetric_encryption_keys=["old"])

    await old.bus.publish(message(old, "group", text="hi"))

    assert (await receive(receiving, channel))["text"] == "hi"


async def test_json_layer_keeps_json(open_layer: OpenLayer, redis_server: RedisServer) -> None:
    layer = open_layer(serializer_format="json")
    channel = await in_group(layer, "group")

    await layer.bus.publish(message(layer, "group", text="é"))

    with redis_server.client() as client:
        [(_, fields)] = client.xrange(Keys(layer.prefix).stream("group")[0])
    assert json.loads(fields[b"m"]) == {"type": "chat.message", "text": "é"}
    assert (await receive(layer, channel))["offset"] == 1
