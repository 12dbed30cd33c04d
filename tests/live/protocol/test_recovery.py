"""Recovery, row by row, in both position variants. docs/protocol.md, 3.8, 3.9, 3.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import MAIN, OFFSET, Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until


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


RIGHT, WRONG, MISSING = "right", "wrong", "missing"

KEPT_4_TO_6: list[Any] = [
    pytest.param(6, RIGHT, [], True, id="at the top"),
    pytest.param(5, RIGHT, [6], True, id="one behind"),
    pytest.param(3, RIGHT, [4, 5, 6], True, id="all that is kept"),
    pytest.param(2, RIGHT, [4, 5, 6], False, id="gap of one"),
    pytest.param(0, RIGHT, [4, 5, 6], False, id="gap from the beginning"),
    pytest.param(7, RIGHT, [], False, id="beyond the top"),
    pytest.param(100, RIGHT, [], False, id="far beyond the top"),
    pytest.param(3, WRONG, [4, 5, 6], False, id="wrong epoch"),
    pytest.param(3, MISSING, [4, 5, 6], False, id="missing epoch"),
    pytest.param(6, WRONG, [], False, id="at the top, wrong epoch"),
    pytest.param(6, MISSING, [], False, id="at the top, missing epoch"),
]


@pytest.mark.parametrize(("offset", "epoch", "offsets", "recovered"), KEPT_4_TO_6)
async def test_recovery_from_six_publications_of_which_three_are_kept(
    stream: Stream, offset: int, epoch: str, offsets: list[int], recovered: bool
) -> None:
    stream.publish(*range(1, 7))
    right = await stream.epoch()
    asked = {RIGHT: right, WRONG: right + "x", MISSING: None}[epoch]
    result = await stream.recover(offset, asked)
    assert result == stream.answer(6, right, offsets, recovered=recovered)
    await stream.client.quiet()


def remove(stream: Stream) -> None:
    assert stream.server.api("history_remove", channel=stream.channel) == {"result": {}}


def let_expire(stream: Stream) -> None:
    def is_empty() -> bool:
        history = stream.server.api("history", channel=stream.channel)
        return history == {"result": {"publications": []}}

    assert not is_empty()
    wait_until(is_empty, what="the end of history_lifetime")


@pytest.mark.parametrize(
    ("namespace", "lose"),
    [("recover", remove), ("brief", let_expire)],
    ids=["removed", "expired"],
)
@pytest.mark.parametrize(("offset", "recovered"), [(6, True), (5, False)])
async def test_position_survives_the_loss_of_history(
    stream: Stream,
    unique: str,
    namespace: str,
    lose: Callable[[Stream], None],
    offset: int,
    recovered: bool,
) -> None:
    stream.channel = f"{namespace}:{unique}"
    stream.publish(*range(1, 7))
    epoch = await stream.epoch()
    lose(stream)
    result = await stream.recover(offset, epoch)
    assert result == stream.answer(6, epoch, [], recovered=recovered)


@pytest.mark.parametrize(("epoch", "recovered"), [(RIGHT, True), (WRONG, False), (MISSING, False)])
async def test_recovery_where_nothing_was_ever_published(
    stream: Stream, epoch: str, recovered: bool
) -> None:
    right = await stream.epoch()
    asked = {RIGHT: right, WRONG: "other", MISSING: None}[epoch]
    result = await stream.recover(0, asked)
    assert result == stream.answer(0, right, [], recovered=recovered)


async def test_first_publication_continues_the_position_told_before_it(stream: Stream) -> None:
    epoch = await stream.epoch()
    stream.publish(1, 2)
    result = await stream.recover(0, epoch)
    assert result == stream.answer(2, epoch, [1, 2], recovered=True)


async def test_subscribe_without_recovery_tells_the_position_and_brings_nothing(
    stream: Stream,
) -> None:
    stream.publish(1, 2)
    result = await stream.subscribe(**stream.variant.since(1, "x") | {"recover": False})
    assert result == stream.answer(2, result["epoch"], [], recovered=False)
    stream.publish(3)
    assert await stream.client.publication() == {stream.variant.field: 3, "data": {"n": 3}}


@pytest.mark.parametrize(
    "position",
    [{"seq": 5}, {"offset": 5}, {"seq": 5, "offset": 1}, {"seq": 0, "gen": 0, "offset": 5}],
    ids=["seq", "offset", "seq wins over offset", "offset when seq and gen are 0"],
)
async def test_either_form_of_the_position_is_understood_in_both_variants(
    stream: Stream, position: dict[str, int]
) -> None:
    stream.publish(*range(1, 7))
    epoch = await stream.epoch()
    result = await stream.subscribe(recover=True, epoch=epoch, **position)
    assert result == stream.answer(6, epoch, [6], recovered=True)


# server-side subscriptions


@pytest.mark.parametrize(
    ("offset", "offsets", "recovered"), [(6, [], True), (4, [5, 6], True), (1, [4, 5, 6], False)]
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
