"""What surveys and nodes leave behind in Redis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime import payload
from realtime.engine.lists import LISTS_KEPT, Kind
from realtime.engine.nodes import NODES_REMEMBERED
from tests.conftest import new_word
from tests.engine.bench import NODE, NODE_LIFETIME, SECOND_NODE
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import KINDS, RedisBench
from tests.redis_server import RedisServer
from tests.unit.parts import eventually

QUESTION = payload.check(b'{"ask":"how do you do"}')
LIFETIME = 10.0


@pytest.fixture(params=KINDS)
async def redis(request: pytest.FixtureRequest, open_redis: OpenRedisBench) -> RedisBench:
    """Each kind of engine over Redis."""
    bench: RedisBench = await open_redis(request.param)
    return bench


def keys_of(bench: RedisBench, survey: str) -> set[str]:
    """The keys of a survey."""
    return {key for key in bench.stored_keys() if survey in key}


async def test_answer_that_comes_too_late_leaves_nothing(redis: RedisBench) -> None:
    survey = new_word()
    await redis.cluster.ask(survey, QUESTION, LIFETIME)
    assert keys_of(redis, survey)

    await redis.elapse(LIFETIME + 1)
    await redis.cluster.answer(survey, b"late")

    assert keys_of(redis, survey) == set()


async def test_forgotten_node_leaves_nothing_beside_one_that_is_alive(redis: RedisBench) -> None:
    await redis.cluster.announce(NODE, LIFETIME)
    await redis.elapse(NODES_REMEMBERED - 1)
    await redis.cluster.announce(SECOND_NODE, LIFETIME)
    await redis.elapse(2)

    assert [status.uid for status in await redis.cluster.statuses()] == ["N2"]

    server = redis.server_of(redis.keys.seen[0])
    assert server is not None
    with server.client() as client:
        assert client.hkeys(redis.keys.seen[0]) == [b"N2"]


async def test_list_of_a_node_without_heartbeats_ends(open_redis: OpenRedisBench) -> None:
    bench = await open_redis()
    await bench.broker.subscribe("channel")
    key = bench.keys.list_of(Kind.CHANNELS, NODE.uid)
    server = bench.server_of(key)
    assert server is not None
    with server.client() as client:
        assert 0 < client.pttl(key) <= (LISTS_KEPT + NODE_LIFETIME) * 1000
        client.pexpire(key, 1000)

        await bench.cluster.announce(NODE, NODE_LIFETIME)

        assert client.pttl(key) > LISTS_KEPT * 1000


async def test_channels_of_an_older_copy_of_redis_are_corrected_when_the_node_is_back(
    open_redis: OpenRedisBench, own_redis: Callable[[], RedisServer]
) -> None:
    redis = own_redis()
    bench = await open_redis(servers=[redis])
    await bench.broker.subscribe("lost")
    key = bench.keys.list_of(Kind.CHANNELS, NODE.uid)
    with redis.client() as client:
        assert client.srem(key, "lost") == client.sadd(key, "long gone") == 1

        redis.kill_pubsub()
        await eventually(lambda: bool(bench.receiver.resumptions))
        await bench.cluster.announce(NODE, NODE_LIFETIME)

        assert client.smembers(key) == {b"lost"}
