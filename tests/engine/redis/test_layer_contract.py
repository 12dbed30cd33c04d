"""RedisChannelLayer keeps to the contract of Channels: names, capacity, expiry, groups.

Where the stock layers check the same, they are asked, too.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from channels.exceptions import ChannelFull
from channels.layers import BaseChannelLayer, InMemoryChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer
from hypothesis import given
from hypothesis import strategies as st

from realtime.engine.redis.layer import RedisChannelLayer
from tests.engine.redis.layers import receive
from tests.redis_server import RedisServer
from tests.unit.parts import Clock, eventually, turns

OpenLayer = Callable[..., RedisChannelLayer]


async def numbers(layer: RedisChannelLayer, channel: str, end: int) -> list[int]:
    """The numbers of the messages that are received, up to this one."""
    received: list[int] = []
    while not received or received[-1] != end:
        received.append((await receive(layer, channel))["number"])
    return received


async def arrived(sender: RedisChannelLayer, layer: RedisChannelLayer) -> None:
    """Wait until everything that was sent before has arrived: messages stay in their order."""
    probe = await layer.new_channel()
    await sender.send(probe, {"type": "test"})
    await receive(layer, probe)


def test_it_has_the_methods_of_a_channel_layer() -> None:
    for name in ("send", "receive", "new_channel", "group_add", "group_discard", "group_send"):
        ours, stock = getattr(RedisChannelLayer, name), getattr(InMemoryChannelLayer, name)
        assert inspect.iscoroutinefunction(ours)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(stock).parameters)
    assert {"groups", "flush"} == set(RedisChannelLayer.extensions)
    assert inspect.iscoroutinefunction(RedisChannelLayer.flush)
    assert inspect.iscoroutinefunction(RedisChannelLayer.close)
    assert RedisChannelLayer.ChannelFull is ChannelFull


# names

NAMES = [
    *("a", "A-b_c.9", "specific.abc!", "specific.abc!DEF-1", "a" * 99),
    *("", "!", "!a", "a!b!c", "a b", "a:b", "é", "a" * 100, "a\n", 5, None, b"a", ["a"]),
]


def is_valid(check: Callable[[Any], object], name: object) -> bool:
    try:
        check(name)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_are_those_of_channels(name: object) -> None:
    ours, stock = RedisChannelLayer(), BaseChannelLayer()
    if name == "a\n":  # the stock expressions let a line break end a name
        assert not is_valid(ours.require_valid_channel_name, name)
        return

    assert is_valid(ours.require_valid_channel_name, name) == is_valid(
        stock.require_valid_channel_name, name
    )
    assert is_valid(ours.require_valid_group_name, name) == is_valid(
        stock.require_valid_group_name, name
    )


@given(name=st.text(st.sampled_from("aZ09-_.!: "), max_size=8))
def test_any_name_is_judged_as_by_channels(name: str) -> None:
    ours, stock = RedisChannelLayer(), BaseChannelLayer()
    assert is_valid(ours.require_valid_channel_name, name) == is_valid(
        stock.require_valid_channel_name, name
    )


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda layer: layer.send("a b", {}), id="send"),
        pytest.param(lambda layer: layer.receive("a b"), id="receive"),
        pytest.param(lambda layer: layer.group_add("a b", "c"), id="group_add-group"),
        pytest.param(lambda layer: layer.group_add("g", "a b"), id="group_add-channel"),
        pytest.param(lambda layer: layer.group_discard("a b", "c"), id="group_discard-group"),
        pytest.param(lambda layer: layer.group_discard("g", "a b"), id="group_discard-channel"),
        pytest.param(lambda layer: layer.group_send("a b", {}), id="group_send"),
        pytest.param(lambda layer: layer.send("a", ["no", "dict"]), id="send-list"),
        pytest.param(lambda layer: layer.group_send("g", "text"), id="group_send-text"),
    ],
)
async def test_wrong_name_or_message_is_a_type_error(
    open_layer: OpenLayer, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(TypeError):
        await call(open_layer())


async def test_channels_made_with_an_unusual_prefix_can_be_used(
    open_layer: OpenLayer, unique: str
) -> None:
    """Names begin with the prefix, and sites may have chosen any."""
    layer = open_layer(prefix=f"{unique}:my site, " + "x" * 80)
    channel = await layer.new_channel()
    await layer.group_add("group", channel)

    await layer.send(channel, {"type": "test", "by": "name"})
    await layer.group_send("group", {"type": "test", "by": "group"})

    assert [(await receive(layer, channel))["by"] for _ in range(2)] == ["name", "group"]


async def test_process_specific_channel_is_used_by_its_whole_name(
    open_layer: OpenLayer, unique: str
) -> None:
    layer = open_layer()
    one, other = f"{unique}.process!one", f"{unique}.process!other"
    receiving = [asyncio.create_task(receive(layer, name)) for name in (one, other)]
    await eventually(lambda: len(layer.bus.on_loop().mailboxes) == 2)
    await layer.group_add("group", one)

    await layer.send(other, {"type": "test", "to": "other"})
    await layer.group_send("group", {"type": "test", "to": "one"})

    assert [(await each)["to"] for each in receiving] == ["one", "other"]


# readers


async def test_each_message_is_received_by_one_reader_only(open_layer: OpenLayer) -> None:
    layer = open_layer()
    channel = await layer.new_channel()
    readers = [asyncio.create_task(receive(layer, channel)) for _ in range(3)]

    for number in range(3):
        await layer.send(channel, {"type": "test", "number": number})

    assert sorted([(await reader)["number"] for reader in readers]) == [0, 1, 2]


async def test_reader_that_is_cancelled_leaves_the_channel_to_the_others(
    open_layer: OpenLayer,
) -> None:
    layer = open_layer()
    channel = await layer.new_channel()
    leaving, staying = (asyncio.create_task(receive(layer, channel)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])

    await layer.send(channel, {"type": "test", "number": 1})

    assert (await staying)["number"] == 1


# capacity


async def test_channel_of_this_process_that_is_full_refuses_messages(
    open_layer: OpenLayer,
) -> None:
    layer = open_layer(capacity=2)
    channel, other = await layer.new_channel(), await layer.new_channel()
    for number in range(2):
        await layer.send(channel, {"type": "test", "number": number})
    await arrived(layer, layer)

    with pytest.raises(ChannelFull):
        await layer.send(channel, {"type": "test", "number": 2})

    await layer.send(other, {"type": "test", "number": 0})
    assert await numbers(layer, other, 0) == [0]
    assert (await receive(layer, channel))["number"] == 0
    await layer.send(channel, {"type": "test", "number": 3})
    assert await numbers(layer, channel, 3) == [1, 3]


async def test_channel_of_another_process_that_is_full_drops_messages(
    open_layer: OpenLayer, caplog: pytest.LogCaptureFixture
) -> None:
    sender, layer = open_layer(), open_layer(capacity=3)
    channel = await layer.new_channel()
    for number in range(6):
        await sender.send(channel, {"type": "test", "number": number})
    await arrived(sender, layer)

    assert [(await receive(layer, channel))["number"] for _ in range(3)] == [0, 1, 2]
    await sender.send(channel, {"type": "test", "number": 6})
    assert await numbers(layer, channel, 6) == [6]
    assert caplog.text.count(f"A channel of the layer is full, dropping messages: {channel}") == 1


async def test_group_drops_what_a_full_channel_cannot_take(open_layer: OpenLayer) -> None:
    layer = open_layer(capacity=1)
    full, empty = await layer.new_channel(), await layer.new_channel()
    for channel in (full, empty):
        await layer.group_add("group", channel)
    await layer.send(full, {"type": "test", "number": 0})

    await layer.group_send("group", {"type": "test", "number": 1})

    assert await numbers(layer, empty, 1) == [1]
    assert await numbers(layer, full, 0) == [0]
    await layer.group_send("group", {"type": "test", "number": 2})
    assert await numbers(layer, full, 2) == [2]


async def test_capacity_may_depend_on_the_name(open_layer: OpenLayer, unique: str) -> None:
    layer = open_layer(
        capacity=5, channel_capacity={f"{unique}slow.*": 1, re.compile(r".*fast\."): 50}
    )
    expected = {"slow.": 1, "fast.": 50, "other.": 5}

    channels = {kind: await layer.new_channel(kind) for kind in expected}

    assert {kind: layer.get_capacity(name) for kind, name in channels.items()} == expected


# expiry


async def test_message_that_waited_too_long_is_not_received(
    open_layer: OpenLayer, clock: Clock
) -> None:
    layer = open_layer(expiry=60, capacity=2)
    channel = await layer.new_channel()
    for number in range(2):
        await layer.send(channel, {"type": "test", "number": number})
    await arrived(layer, layer)
    await clock.advance(61)

    await layer.send(channel, {"type": "test", "number": 2})  # room for it was made

    assert await numbers(layer, channel, 2) == [2]


async def test_channel_leaves_a_group_when_its_membership_expires(
    open_layer: OpenLayer, clock: Clock
) -> None:
    layer = open_layer(group_expiry=3600)
    renewed, forgotten = await layer.new_channel(), await layer.new_channel()
    for channel in (renewed, forgotten):
        await layer.group_add("group", channel)
    await clock.advance(3000)
    await layer.group_add("group", renewed)
    await arrived(layer, layer)  # or Redis would count as silent
    await clock.advance(1000)

    await layer.group_send("group", {"type": "test", "number": 1})
    await layer.send(forgotten, {"type": "test", "number": 2})

    assert await numbers(layer, renewed, 1) == [1]
    assert await numbers(layer, forgotten, 2) == [2]


async def cancel_receive(layer: RedisChannelLayer, channel: str) -> None:
    """End the only reader of a channel, as the end of a consumer does."""
    receiving = asyncio.create_task(layer.receive(channel))
    await turns()
    receiving.cancel()
    await asyncio.wait([receiving])


async def test_channel_of_a_consumer_that_ended_leaves_its_groups_after_a_minute(
    open_layer: OpenLayer, redis_server: RedisServer, unique: str, clock: Clock
) -> None:
    layer = open_layer()
    channel = await layer.new_channel()
    await layer.group_add("group", channel)
    await cancel_receive(layer, channel)
    assert f"{unique}__group__group" in redis_server.pubsub_channels()

    await clock.advance(61)

    await eventually(lambda: f"{unique}__group__group" not in redis_server.pubsub_channels())


async def test_channel_that_is_read_again_finds_its_groups_as_it_left_them(
    open_layer: OpenLayer, clock: Clock
) -> None:
    layer = open_layer()
    channel = await layer.new_channel()
    await layer.group_add("group", channel)
    await cancel_receive(layer, channel)
    await clock.advance(50)
    receiving = asyncio.create_task(layer.receive(channel))
    await arrived(layer, layer)  # or Redis would count as silent
    await clock.advance(50)

    await layer.group_send("group", {"type": "test", "number": 1})

    assert (await receiving)["number"] == 1


# beside the stock layer


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 186])
def test_shards_are_those_of_the_stock_layer(shards: int) -> None:
    hosts = [f"redis://h{number}" for number in range(shards)]
    ours = RedisChannelLayer(hosts=hosts, prefix="p")

    async def chosen() -> list[int]:
        stock = RedisPubSubChannelLayer(hosts=hosts, prefix="p")._get_layer()
        names = [f"p__group__{number}" for number in range(4096)]
        return [stock._shards.index(stock._get_shard(name)) for name in names]

    assert [ours.bus.shard(f"{number}") for number in range(4096)] == asyncio.run(chosen())


def test_options_of_the_stock_layers_that_mean_nothing_here_are_accepted() -> None:
    RedisChannelLayer(hosts=["redis://h"], on_disconnect=print, on_reconnect=print)
