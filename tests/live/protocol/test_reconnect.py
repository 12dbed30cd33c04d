"""A client whose connection is cut gets every publication once and in order.

docs/protocol.md, 3.9 and 3.10; the promise of `history_recover`.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import MAIN, OFFSET, Connect, Options, Serve
from tests.protocol_client import Closed, ProtocolClient, open_client
from tests.server import Server


class Recovering:
    """Does what a client library does: read, lose the connection, reconnect, recover, go on."""

    def __init__(self, server: Server, channel: str, format_name: str, *, server_side: bool):
        self._server = server
        self._channel = channel
        self._format = format_name
        self._server_side = server_side
        self._position: dict[str, Any] = {}
        self._context: AbstractAsyncContextManager[ProtocolClient] | None = None
        self.client: ProtocolClient
        self.seen: list[Any] = []
        self.recoveries: list[bool] = []

    async def open(self) -> None:
        """Connect, subscribe, recover."""
        channels = [self._channel] if self._server_side else []
        self._context = open_client(self._server.socket, format_name=self._format, connected=False)
        self.client = await self._context.__aenter__()
        params: dict[str, Any] = {"token": connection_token("17", channels=channels)}
        if self._server_side:
            params["subs"] = {self._channel: self._position}
            result = (await self.client.result("connect", params))["subs"][self._channel]
        else:
            await self.client.result("connect", params)
            params = {"channel": self._channel} | self._position
            result = await self.client.result("subscribe", params)
        self.recoveries.append(result.get("recovered", False))
        if "offset" in result:
            position = {"offset": result["offset"]}
        else:
            position = {"seq": result.get("seq", 0), "gen": result.get("gen", 0)}
        publications = result.get("publications", [])
        if "offset" not in result:
            publications = publications[::-1]
        self.seen += [publication["data"] for publication in publications]
        self._position = {"recover": True, "epoch": result["epoch"]} | position

    async def read(self, count: int) -> None:
        """Read publications until there are `count` in all."""
        while len(self.seen) < count:
            publication = await self.client.publication()
            self.seen.append(publication["data"])
            for field in ("seq", "offset"):
                if field in publication:
                    self._position[field] = publication[field]

    async def cut(self) -> None:
        """Cut the connection. Received messages are read; those on the way are lost."""
        await self.client.abort()
        with suppress(Closed):
            await self.read(10**9)
        await self.close()

    async def close(self) -> None:
        assert self._context is not None
        await self._context.__aexit__(None, None, None)


VARIANTS = pytest.mark.parametrize("options", [MAIN, OFFSET], ids=["seq", "offset"])
SIDES = pytest.mark.parametrize("server_side", [False, True], ids=["client side", "server side"])


@VARIANTS
@SIDES
async def test_client_that_is_cut_again_and_again_sees_every_publication_once_and_in_order(
    serve: Serve, unique: str, format_name: str, options: Options, server_side: bool
) -> None:
    server, channel, total, cuts = serve(**options), f"long:{unique}", 200, 8
    client = Recovering(server, channel, format_name, server_side=server_side)
    await client.open()

    async def publish() -> None:
        for number in range(total):
            await asyncio.to_thread(server.publish, channel, number)

    publishing = asyncio.create_task(publish())
    for cut in range(1, cuts + 1):
        await client.read(cut * total // (cuts + 1))
        await client.cut()
        await client.open()
    await client.read(total)
    await publishing

    assert client.seen == list(range(total))
    assert client.recoveries == [False] + cuts * [True]
    await client.client.quiet()
    await client.close()


@VARIANTS
async def test_subscribing_amid_publications_leaves_neither_gap_nor_duplicate(
    serve: Serve, connect: Connect, unique: str, format_name: str, options: Options
) -> None:
    server, channel = serve(**options), f"long:{unique}"
    position = "offset" if options is OFFSET else "seq"
    keeper, client = await connect(server, max_queue=None), await connect(server)
    await keeper.result("subscribe", {"channel": channel})
    done = asyncio.Event()

    async def publish() -> None:
        while not done.is_set():
            await asyncio.to_thread(server.publish, channel, 1)

    publishing = asyncio.create_task(publish())
    try:
        for _ in range(30):
            client.received.clear()
            top = (await client.result("subscribe", {"channel": channel})).get(position, 0)
            assert "id" in client.received[0], "no publication precedes the reply"
            for expected in range(top + 1, top + 4):
                assert (await client.publication())[position] == expected
            await client.result("unsubscribe", {"channel": channel})
            client.pushes.clear()
    finally:
        done.set()
        await publishing
