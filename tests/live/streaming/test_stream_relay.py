"""Streams at one node, and requests beside them at another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from realtime.protocol.v2 import client_pb2
from tests.conftest import connection_token
from tests.live.clusters import KINDS, OwnRedis, TwoNodes
from tests.live.raw_http import open_exchange
from tests.live.streaming.client import (
    BINARY,
    BINARY_BODY,
    EMULATION,
    HTTP_STREAM,
    SSE,
    STREAMS,
    BinaryStream,
    ask,
    connect_command,
    frame_of,
    streaming,
)
from tests.protocol_client import delimit
from tests.server import Server

Cluster = Callable[..., list[Server]]


@pytest.fixture(params=KINDS.values(), ids=list(KINDS))
def nodes(request: pytest.FixtureRequest, shared_cluster: Cluster) -> TwoNodes:
    """Two nodes of one service."""
    one, other = request.param
    options = {**STREAMS, "redis_prefix": "streams-at-two-nodes"}
    return shared_cluster(server=one, **options)[0], shared_cluster(server=other, **options)[1]


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE])
async def test_any_node_takes_requests_beside_a_stream(
    nodes: TwoNodes, path: str, unique: str
) -> None:
    one, other = nodes
    channel = f"open:{unique}"
    async with streaming(one, path, frame_of(connect_command())) as stream:
        await stream.connected()

        subscribe = {"id": 2, "subscribe": {"channel": channel}}
        assert await stream.emulate(other, subscribe) == 204
        assert await stream.message() == {"id": 2, "subscribe": {}}

        publish = {"id": 3, "publish": {"channel": channel, "data": "é\u2028"}}
        assert await stream.emulate(other, publish) == 204
        messages = [await stream.message(), await stream.message()]

    assert {"id": 3, "publish": {}} in messages
    assert "é\u2028" in [
        message["push"]["pub"]["data"] for message in messages if "push" in message
    ]


async def test_any_node_takes_binary_requests_beside_a_binary_stream(
    nodes: TwoNodes, unique: str
) -> None:
    one, other = nodes
    channel = f"open:{unique}"
    token = client_pb2.ConnectRequest(token=connection_token("17")).SerializeToString()
    subscribe = client_pb2.SubscribeRequest(channel=channel).SerializeToString()
    publish = client_pb2.PublishRequest(channel=channel, data=b'"\xc3\xa9"').SerializeToString()
    frame = delimit(client_pb2.Command(id=1, connect=token))
    exchange = await open_exchange(one, "POST", HTTP_STREAM, frame, BINARY_BODY)
    try:
        await exchange.begin()
        stream = BinaryStream(exchange)
        connected = (await stream.reply()).connect
        commands = (
            client_pb2.Command(id=2, subscribe=subscribe),
            client_pb2.Command(id=3, publish=publish),
        )
        request = client_pb2.EmulationRequest(
            node=connected.node, session=connected.session, data=b"".join(map(delimit, commands))
        )
        body = request.SerializeToString()

        answer = await ask(other, "POST", EMULATION, body, BINARY_BODY)
        messages = [await stream.reply() for _ in range(3)]
    finally:
        await exchange.close()

    assert (answer.status, exchange.headers["content-type"]) == (204, BINARY)
    assert messages[0].HasField("subscribe")
    assert [each.push.pub.data for each in messages if each.HasField("push")] == [b'"\xc3\xa9"']
    assert [each.id for each in messages if each.HasField("publish")] == [3]


async def test_node_that_has_died_is_not_found(cluster: Cluster, own_redis: OwnRedis) -> None:
    one, other = cluster(2, own_redis(), **STREAMS)
    async with streaming(one, HTTP_STREAM, frame_of(connect_command())) as stream:
        await stream.connected()
        assert await stream.emulate(other, {"id": 2, "rpc": {}}) == 204
        one.kill()
        async with asyncio.timeout(60):
            while (status := await stream.emulate(other, {"id": 3, "rpc": {}})) != 404:
                assert status == 503
