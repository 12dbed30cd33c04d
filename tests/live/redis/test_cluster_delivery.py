"""Publications, history and recovery over several nodes. docs/protocol.md, 3.8 to 3.16."""

from __future__ import annotations

import asyncio
from typing import Any

from realtime.node.interruptions import CATCH_UP_AT_ONCE
from tests.live.clusters import SERVICE, Cluster, OwnRedis, TwoNodes
from tests.live.configurations import Connect, info_of
from tests.server import Server


async def epoch_of(connect: Connect, server: Server, channel: str) -> str:
    """The epoch of a recoverable channel."""
    client = await connect(server)
    epoch: str = (await client.result("subscribe", {"channel": channel}))["epoch"]
    await client.socket.close()
    return epoch


async def test_publication_of_a_client_reaches_subscribers_of_both_nodes_once(
    two_nodes: TwoNodes, connect: Connect, unique: str, format_name: str
) -> None:
    (one, other), channel = two_nodes, f"open:{unique}"
    publisher = await connect(one, user=unique)
    readers = [await connect(server) for server in (one, other)]
    for reader in readers:
        await reader.result("subscribe", {"channel": channel})
    data = b'{"text":"<Z\xc3\xb6e> & 1.0","n":[1.0,1E5,12345678901234567890]}'

    assert await publisher.result("publish", {"channel": channel, "data": data}) == {}
    await publisher.result("publish", {"channel": channel, "data": "behind it"})

    info = info_of(publisher, unique)
    for reader in readers:
        publication = await reader.publication()
        assert publication == {
            "data": {"text": "<Zöe> & 1.0", "n": [1.0, 1e5, 12345678901234567890]},
            "info": info,
        }
        assert await reader.publication() == {"data": "behind it", "info": info}


async def test_client_recovers_on_the_other_node_exactly_what_it_missed(
    two_nodes: TwoNodes, connect: Connect, unique: str
) -> None:
    (one, other), channel = two_nodes, f"long:{unique}"
    client = await connect(one)
    epoch = (await client.result("subscribe", {"channel": channel}))["epoch"]
    for number in (1, 2):
        other.publish(channel, number)
        assert await client.publication() == {"data": number, "offset": number}
    await client.abort()
    for number, server in [(3, one), (4, other), (5, one)]:
        server.publish(channel, number)

    client = await connect(other)
    params = {"channel": channel, "recover": True, "epoch": epoch, "offset": 2}
    result = await client.result("subscribe", params)

    assert result == {
        "recoverable": True,
        "recovered": True,
        "epoch": epoch,
        "offset": 5,
        "publications": [{"data": number, "offset": number} for number in (3, 4, 5)],
    }
    one.publish(channel, 6)
    assert await client.publication() == {"data": 6, "offset": 6}
    await client.quiet()


async def test_two_that_subscribe_while_the_other_node_publishes_miss_nothing(
    two_nodes: TwoNodes, connect: Connect, unique: str
) -> None:
    (one, other), channel = two_nodes, f"long:{unique}"
    epoch = await epoch_of(connect, one, channel)
    clients = [await connect(other) for _ in range(2)]
    done = asyncio.Event()

    async def publish() -> None:
        while not done.is_set():
            await asyncio.to_thread(one.publish, channel, 1)

    async def recover(client: Any, position: int) -> int:
        """Subscribe, recover, read on; returns the offset up to which it has everything."""
        params = {"channel": channel, "recover": True, "epoch": epoch, "offset": position}
        client.received.clear()
        result = await client.result("subscribe", params)
        assert "id" in client.received[0], "no publication precedes the reply"
        assert result["recovered"] is True
        offsets = [publication["offset"] for publication in result.get("publications", [])]
        top = result.get("offset", 0)
        assert offsets == list(range(position + 1, top + 1))
        for expected in (top + 1, top + 2):
            assert (await client.publication())["offset"] == expected
        await client.result("unsubscribe", {"channel": channel})
        client.pushes.clear()
        return int(top) + 2

    publishing = asyncio.create_task(publish())
    try:
        positions = [0, 0]
        for _ in range(15):  # the first of both begins to follow the channel each time
            positions = await asyncio.gather(*map(recover, clients, positions))
    finally:
        done.set()
        await publishing


async def test_channels_go_on_though_others_end_while_pubsub_is_coming_back(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str
) -> None:
    redis = own_redis()
    one, other = cluster(2, redis, **SERVICE | {"client_channel_limit": 1000})
    leaver, stayer = await connect(other), await connect(other, max_queue=None)
    one.api("info")

    for number in range(3):
        # more than are caught up with side by side; those that end are the first in line
        ending = [f"long:{unique}{number}ending{n}" for n in range(2 * CATCH_UP_AT_ONCE)]
        staying = [f"long:{unique}{number}staying{n}" for n in range(2 * CATCH_UP_AT_ONCE)]
        for client, names in ((leaver, ending), (stayer, staying)):
            calls = [("subscribe", {"channel": name}) for name in names]
            for reply_id in await client.send_together(*calls):
                assert "error" not in await client.reply(reply_id)

        redis.kill_pubsub()
        for name in ending:
            await leaver.result("unsubscribe", {"channel": name})
        assert one.api("broadcast", channels=staying, data=number) == {"result": {}}

        pushes = [await stayer.push() for _ in staying]
        assert {push["channel"] for push in pushes} == set(staying)
        calls = [("unsubscribe", {"channel": name}) for name in staying]
        for reply_id in await stayer.send_together(*calls):
            await stayer.reply(reply_id)
    assert "Traceback" not in other.log
