"""A bus to a Redis Cluster, from threads without an event loop."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import Config
from realtime.config.reader import load
from realtime.engine.base import Outgoing, Published, Store
from realtime.engine.once import Once
from realtime.engine.redis.opening import RedisEngines
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication
from tests.engine.bench import KEPT, PLAIN
from tests.ports import refusing_port
from tests.redis_cluster import RedisCluster
from tests.redis_server import has_sharded_pubsub
from tests.unit.parts import data

pytestmark = pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")

NAMES = [f"channel{number}" for number in range(30)]


@pytest.fixture
def config(redis_cluster: RedisCluster, unique: str) -> Config:
    last = redis_cluster.servers[-1]
    dead = f"127.0.0.1:{refusing_port()}"
    return load(
        {
            "redis_cluster_addrs": f"{dead},127.0.0.1:{last.port}",
            "redis_password": last.password,
            "redis_prefix": unique,
        }
    )


@pytest.fixture
def store(config: Config) -> Store:
    """Of a worker; one of the servers in the options is dead."""
    return RedisEngines().blocking_store(config)


async def test_worker_publishes_to_channels_on_all_servers(store: Store) -> None:
    def publish() -> None:
        # coroutines of a blocking store never suspend
        run = asyncio.Runner()
        with run:
            sent = [Outgoing(name, Publication(data("1")), KEPT, Once("key")) for name in NAMES]
            first = run.run(store.broker.publish_many(sent))
            again = run.run(store.broker.publish_many(sent))
            positions = [each.position for each in first if isinstance(each, Published)]
            assert [position and position.offset for position in positions] == [1] * len(NAMES)
            assert again == [Published(position, kept=False) for position in positions]
            run.run(store.broker.publish(Outgoing("plain", Publication(data("1")), PLAIN)))
            assert run.run(store.broker.positions(NAMES)) == positions
            assert len(run.run(store.broker.history(NAMES[0])).publications) == 1
            assert store.cluster is not None
            assert run.run(store.cluster.statuses()) == []

    await asyncio.to_thread(publish)


async def test_cluster_that_is_away_is_told_at_once() -> None:
    config = load({"redis_cluster_addrs": f"127.0.0.1:{refusing_port()}", "redis_prefix": "away"})
    store = RedisEngines().blocking_store(config)
    with pytest.raises(EngineUnavailable, match="no server of the Redis Cluster answered"):
        await store.broker.publish(Outgoing("a", Publication(data("1")), PLAIN))
