"""Recovery in both position variants. docs/protocol.md, 3.8, 3.9, 3.13."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import MAIN, OFFSET, Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server


class Variant:
    """A position variant: seq and gen, newest publication first; or offset, oldest first."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.options = OFFSET if field == "offset" else MAIN

    def since(self, offset: int, epoch: str | None) -> dict[str, Any]:
        """Return the fields of a request from here on; epoch None: without epoch."""
        fields = {"recover": True, self.field: offset}
        return fields if epoch is None else fields | {"epoch": epoch}

    def answer(
        self, top: int, epoch: str, offsets: list[int], *, recovered: bool
    ) -> dict[str, Any]:
        """Return the expected result, with the top position and with these publications."""
        result: dict[str, Any] = {"recoverable": True, "epoch": epoch}
        if top:
            result[self.field] = top
        if offsets:
            entries = [{self.field: n, "data": {"n": n}} for n in offsets]
            result["publications"] = entries if self.field == "offset" else entries[::-1]
        if recovered:
            result["recovered"] = True
        return result


@pytest.fixture(params=["seq", "offset"])
def variant(request: pytest.FixtureRequest) -> Variant:
    return Variant(request.param)


class Stream:
    """A recoverable channel, and a client that uses one of the variants."""

    def __init__(
        self, server: Server, client: ProtocolClient, channel: str, variant: Variant
    ) -> None:
        self.server = server
        self.client = client
        self.channel = channel
        self.variant = variant
        self.answer = variant.answer

    def publish(self, *numbers: int) -> None:
        """Publish {"n": number}. Numbers begin at 1, so number and offset are equal."""
        for number in numbers:
            self.server.publish(self.channel, {"n": number})

    async def subscribe(self, **fields: Any) -> dict[str, Any]:
        """Subscribe and return the result."""
        result: dict[str, Any] = await self.client.result(
            "subscribe", {"channel": self.channel} | fields
        )
        return result

    async def recover(self, offset: int, epoch: str | None) -> dict[str, Any]:
        """Subscribe from a position and return the result."""
        return await self.subscribe(**self.variant.since(offset, epoch))

    async def epoch(self) -> str:
        """Return the epoch in the result of a subscribe without recovery."""
        epoch: str = (await self.subscribe())["epoch"]
        await self.client.result("unsubscribe", {"channel": self.channel})
        return epoch


@pytest.fixture
async def stream(
    serve: Serve, connect: Connect, unique: str, format_name: str, variant: Variant
) -> Stream:
    """An empty channel that keeps three publications."""
    server = serve(**variant.options)
    return Stream(server, await connect(server), f"recover:{unique}", variant)


# how a position is answered: all rows are in tests/unit/streams/test_recovery.py


@pytest.mark.parametrize(
    ("offset", "has_epoch", "offsets", "recovered"),
    [(5, True, [6], True), (2, True, [4, 5, 6], False), (6, False, [], False)],
    ids=["one behind", "gap of one", "missing epoch"],
)
async def test_recovery_from_six_publications_of_which_three_are_kept(
    stream: Stream, offset: int, has_epoch: bool, offsets: list[int], recovered: bool
) -> None:
    stream.publish(*range(1, 7))
    epoch = await stream.epoch()
    result = await stream.recover(offset, epoch if has_epoch else None)
    assert result == stream.answer(6, epoch, offsets, recovered=recovered)
    await stream.client.quiet()


async def test_subscribe_without_recovery_tells_the_position_and_brings_nothing(
    stream: Stream,
) -> None:
    stream.publish(1, 2)
    result = await stream.subscribe(**stream.variant.since(1, "x") | {"recover": False})
    assert result == stream.answer(2, result["epoch"], [], recovered=False)
    stream.publish(3)
    assert await stream.client.publication() == {stream.variant.field: 3, "data": {"n": 3}}


# server-side subscriptions


@pytest.mark.parametrize(
    ("offset", "offsets", "recovered"), [(4, [5, 6], True), (1, [4, 5, 6], False)]
)
async def test_server_side_subscription_is_recovered_by_connect(
    stream: Stream, connect: Connect, offset: int, offsets: list[int], recovered: bool
) -> None:
    channel, variant = stream.channel, stream.variant
    stream.publish(*range(1, 7))
    epoch = await stream.epoch()
    client = await connect(stream.server, connected=False)
    subs = {channel: variant.since(offset, epoch), "unknown": {"recover": True}, "null": None}
    token = connection_token("17", channels=[channel])
    result = await client.result("connect", {"token": token, "subs": subs})
    assert result["subs"] == {channel: variant.answer(6, epoch, offsets, recovered=recovered)}
    stream.publish(7)
    assert await client.publication() == {variant.field: 7, "data": {"n": 7}}
