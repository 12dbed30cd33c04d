"""RedisBus: publishing in one round trip, from event loops and from threads without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import redis
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import channel_layers
from channels.testing import WebsocketCommunicator

from realtime.config.options import ChannelOptions
from realtime.engine.base import Joined, Left, Outgoing, Published
from realtime.engine.redis.broker import DEFAULT_META, RedisStreams
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.engine.redis.shards import Shards
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ClientInfo, Publication
from realtime.serving import run_by_hand
from tests.engine.bench import KEPT, PLAIN, RecordingReceiver
from tests.engine.redis.layers import receive
from tests.redis_server import RedisServer
from tests.unit.parts import data, eventually

OpenLayer = Callable[..., RedisChannelLayer]
LONG = ChannelOptions(history_size=100, history_lifetime=100)


@pytest.fixture(params=["one Redis", "shards"])
def layer(request: pytest.FixtureRequest, open_layer: OpenLayer) -> RedisChannelLayer:
    """Our layer over one Redis, and over two."""
    return open_layer(shards=2 if request.param == "shards" else 1)


async def in_group(layer: RedisChannelLayer, name: str) -> str:
    """A channel of the layer in the group of one of the service."""
    channel: str = await layer.new_channel()
    await layer.group_add(Keys(layer.prefix).group(name), channel)
    return channel


def outgoing(name: str, value: int = 1, options: ChannelOptions = KEPT) -> Outgoing:
    return Outgoing(name, Publication(data(str(value)), uid=f"u{value}"), options)


class Way:
    """Publishing on the loop, or in a thread without one."""

    def __init__(self, kind: str) -> None:
        self._in_thread = kind == "blocking"

    def streams(self, layer: RedisChannelLayer) -> RedisStreams:
        shards = Shards(layer.bus, layer.prefix, blocking=self._in_thread)
        return RedisStreams(shards, DEFAULT_META)

    async def __call__(self, layer: RedisChannelLayer, *several: Outgoing) -> Any:
        """Return what became of each."""
        publishing = self.streams(layer).publish_many(several)
        return await (asyncio.to_thread(run_by_hand, publishing) if self._in_thread else publishing)

    async def one(self, layer: RedisChannelLayer, each: Outgoing) -> Published:
        publishing = self.streams(layer).publish(each)
        return await (asyncio.to_thread(run_by_hand, publishing) if self._in_thread else publishing)


@pytest.fixture(params=["on a loop", "blocking"])
def way(request: pytest.FixtureRequest) -> Way:
    return Way(request.param)


async def test_publication_arrives_with_its_position(layer: RedisChannelLayer, way: Way) -> None:
    channel = await in_group(layer, "c")

    positions = [(await way.one(layer, outgoing("c", n))).position for n in range(2)]
    sent = await way.one(layer, outgoing("c", 7, PLAIN))

    for number, position in enumerate(positions):
        assert position is not None
        message = await receive(layer, channel)
        assert message["record"] == [str(number), f"u{number}"]
        assert (message["offset"], message["epoch"]) == (number + 1, position.epoch)
    assert sent == Published()
    assert "offset" not in await receive(layer, channel)


async def test_several_publications_are_numbered_in_their_order(
    layer: RedisChannelLayer, way: Way
) -> None:
    names = ["a", "b", "c", "d"]
    channels = {name: await in_group(layer, name) for name in names}

    results = await way(
        layer, *(outgoing(names[n % 4], n, PLAIN if n % 4 == 3 else LONG) for n in range(40))
    )

    offsets = [result.position and result.position.offset for result in results]
    assert offsets == [None if number % 4 == 3 else number // 4 + 1 for number in range(40)]
    for index, name in enumerate(names):
        numbers = [(await receive(layer, channels[name]))["record"][0] for _ in range(10)]
        assert numbers == [str(number) for number in range(index, 40, 4)]
    assert await way(layer) == []


async def test_shard_that_is_away_fails_its_own_publications_only(
    own_redis: Callable[..., RedisServer], open_layer: OpenLayer, way: Way
) -> None:
    servers = [own_redis(), own_redis()]
    layer = open_layer(hosts=[server.url for server in servers])
    names = [f"channel{number}" for number in range(20)]
    there = [way.streams(layer)._shards.shard(name) == 0 for name in names]
    assert 0 < sum(there) < 20
    servers[1].kill()

    results = await way(layer, *(outgoing(name) for name in names))

    assert [isinstance(result, Published) for result in results] == there
    assert [isinstance(result, EngineUnavailable) for result in results] == [
        not here for here in there
    ]


async def test_publishing_fails_in_time_when_redis_hangs(
    own_redis: Callable[..., RedisServer], open_layer: OpenLayer, way: Way
) -> None:
    server = own_redis()
    layer = open_layer(hosts=[server.url], timeout=1.5, connect_timeout=1.5)
    await way.one(layer, outgoing("c"))
    server.freeze()

    with pytest.raises(EngineUnavailable):
        async with asyncio.timeout(15):
            await way.one(layer, outgoing("c"))

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
    await layer.group_send("group", {"type": "t", "text": "not for us"})
    await layer.group_send("after", {"type": "t", "text": "for us"})
    assert (await receive(layer, channel))["text"] == "for us"


# an ordinary consumer


class ChatConsumer(AsyncJsonWebsocketConsumer):
    """An ordinary consumer that sends what it receives to its client."""

    group: ClassVar = ""

    async def connect(self) -> None:
        await self.channel_layer.group_add(self.group, self.channel_name)
        await self.accept()

    async def realtime_publication(self, event: Any) -> None:
        await self.send_json(event)


async def test_publication_reaches_an_ordinary_consumer_in_the_group(
    layer: RedisChannelLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChatConsumer, "group", Keys(layer.prefix).group("c"))
    before = channel_layers.set("default", layer)
    try:
        socket = WebsocketCommunicator(ChatConsumer.as_asgi(), "/chat")
        assert (await socket.connect(timeout=20))[0]

        position = (await Way("on a loop").one(layer, outgoing("c"))).position

        assert position is not None
        event = await socket.receive_json_from(timeout=10)
        assert (event["record"], event["epoch"]) == (["1", "u1"], position.epoch)
        await socket.disconnect(timeout=20)
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
    engine = RedisEngine(layer.bus, layer.prefix)
    receiver = RecordingReceiver()
    await engine.start(receiver, receiver.uid)
    info = ClientInfo(SECRET, "C", data(f'"{SECRET}"'), data(f'"{SECRET}"'))
    publication = Publication(data(f'"{SECRET}"'), info)
    with server.client() as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.psubscribe(f"{layer.prefix}*")
        pubsub.get_message(timeout=5)  # confirmed
        await engine.broker.subscribe("c")
        await engine.broker.publish(Outgoing("c", publication, KEPT))
        await engine.broker.notify("c", Joined(info))
        await engine.broker.notify("c", Left(info))
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
    channel = await in_group(receiving, "c")
    await Way("on a loop").one(open_layer(symmetric_encryption_keys=["old"]), outgoing("c"))
    assert (await receive(receiving, channel))["record"] == ["1", "u1"]


async def test_json_layer_keeps_json(open_layer: OpenLayer, redis_server: RedisServer) -> None:
    layer = open_layer(serializer_format="json")
    channel = await in_group(layer, "c")

    await Way("on a loop").one(layer, outgoing("c"))

    with redis_server.client() as client:
        [(_, fields)] = client.xrange(Keys(layer.prefix).stream("c")[0])
    assert json.loads(fields[b"m"])["record"] == ["1", "u1"]
    assert (await receive(layer, channel))["offset"] == 1
