"""The published Python client of the second generation, unmodified."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from centrifuge import (
    Client,
    ClientEventHandler,
    ConnectedContext,
    PublicationContext,
    ReplyError,
)

from tests.live.python_client import SubscriptionEvents, python_client
from tests.server import Server
from tests.tcp_proxy import TcpProxy

TIMEOUT = 15.0

both_formats = pytest.mark.parametrize("protobuf", [False, True], ids=["json", "protobuf"])


class ClientEvents(ClientEventHandler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.connected: asyncio.Queue[ConnectedContext] = asyncio.Queue()

    async def on_connected(self, ctx: ConnectedContext) -> None:
        self.connected.put_nowait(ctx)


def data_of(context: PublicationContext) -> Any:
    """The data of a publication: bytes of JSON in Protobuf."""
    data = context.pub.data
    return int(data) if isinstance(data, bytes) else data


@pytest.fixture
async def client(proxy: TcpProxy, protobuf: bool) -> AsyncIterator[Client]:
    """A client behind a proxy, that was told to connect."""
    async with python_client(
        proxy.url,
        events=ClientEvents(),
        use_protobuf=protobuf,
        min_reconnect_delay=0.02,
        max_reconnect_delay=0.1,
    ) as made:
        await made.connect()
        yield made


@both_formats
async def test_subscribes_publishes_and_recovers(
    client: Client, server: Server, proxy: TcpProxy, protobuf: bool, unique: str
) -> None:
    events, channel = SubscriptionEvents(), f"chat:{unique}"
    subscription = client.new_subscription(channel, events=events)
    await subscription.subscribe()
    async with asyncio.timeout(TIMEOUT):
        first = await events.subscribed.get()
        assert first.recoverable
        await subscription.publish(data=b"1" if protobuf else 1)
        assert data_of(await events.published.get()) == 1

        proxy.refuse()
        for value in (2, 3):
            server.publish(channel, value)
        proxy.allow()

        again = await events.subscribed.get()
        assert (again.was_recovering, again.recovered) == (True, True)
        assert [data_of(await events.published.get()) for _ in range(2)] == [2, 3]
    history = await subscription.history(limit=2, reverse=True)
    assert [publication.offset for publication in history.publications] == [3, 2]
    assert (await subscription.presence_stats()).num_clients == 1


@pytest.mark.parametrize("protobuf", [True], ids=["protobuf"])
async def test_data_that_are_not_json_are_refused(client: Client, unique: str) -> None:
    with pytest.raises(ReplyError) as refused:
        await client.publish(f"chat:{unique}", b"boom")
    assert refused.value.code == 107
