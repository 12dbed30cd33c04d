"""Recovery, row by row, in both position variants. Protocol reference, sections 3.8, 3.9, 3.13."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import MAIN, OFFSET, Connect, Serve
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until


class Variant:
    """How positions are spelt: seq and gen, newest publication first; or offset, oldest first."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.options = OFFSET if field == "offset" else MAIN

    def since(self, offset: int, epoch: str | None) -> dict[str, Any]:
        """The fields of a request that continues here; epoch None: not sent."""
        fields = {"recover": True, self.field: offset}
        return fields if epoch is None else fields | {"epoch": epoch}

    def answer(
        self, top: int, epoch: str, offsets: list[int], *, recovered: bool
    ) -> dict[str, Any]:
        """The result that tells top and epoch and brings publications, whose data are n-offset."""
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


def publish(server: Server, channel: str, numbers: range) -> None:
    """Publish {"n": number}, from 1 on, so that number and offset are the same."""
    for number in numbers:
        server.publish(channel, {"n": number})


async def epoch_of(client: ProtocolClient, channel: str) -> str:
    """The epoch of a channel, as a subscribe without recovery tells it."""
    epoch: str = (await client.result("subscribe", {"channel": channel}))["epoch"]
    await client.result("unsubscribe", {"channel": channel})
    return epoch


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
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    variant: Variant,
    offset: int,
    epoch: str,
    offsets: list[int],
    recovered: bool,
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    client = await connect(server)
    publish(server, channel, range(1, 7))
    right = await epoch_of(client, channel)
    asked = {RIGHT: right, WRONG: right + "x", MISSING: None}[epoch]

    result = await client.result("subscribe", {"channel": channel} | variant.since(offset, asked))

    assert result == variant.answer(6, right, offsets, recovered=recovered)
    await client.quiet()


def remove(server: Server, channel: str) -> None:
    assert server.api("history_remove", channel=channel) == {"result": {}}


def let_expire(server: Server, channel: str) -> None:
    def is_empty() -> bool:
        return server.api("history", channel=channel) == {"result": {"publications": []}}

    assert not is_empty()
    wait_until(is_empty, what="the end of history_lifetime")


@pytest.mark.parametrize(
    ("namespace", "lose"),
    [("recover", remove), ("brief", let_expire)],
    ids=["removed", "expired"],
)
@pytest.mark.parametrize(("offset", "recovered"), [(6, True), (5, False)])
async def test_position_survives_the_loss_of_history(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    variant: Variant,
    namespace: str,
    lose: Any,
    offset: int,
    recovered: bool,
) -> None:
    server, channel = serve(**variant.options), f"{namespace}:{unique}"
    client = await connect(server)
    publish(server, channel, range(1, 7))
    epoch = await epoch_of(client, channel)
    lose(server, channel)

    result = await client.result("subscribe", {"channel": channel} | variant.since(offset, epoch))

    assert result == variant.answer(6, epoch, [], recovered=recovered)


@pytest.mark.parametrize(("offset", "recovered"), [(6, True), (5, False)])
async def test_one_publication_after_the_removal_of_history(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    variant: Variant,
    offset: int,
    recovered: bool,
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    client = await connect(server)
    publish(server, channel, range(1, 7))
    epoch = await epoch_of(client, channel)
    remove(server, channel)
    publish(server, channel, range(7, 8))

    result = await client.result("subscribe", {"channel": channel} | variant.since(offset, epoch))

    assert result == variant.answer(7, epoch, [7], recovered=recovered)


@pytest.mark.parametrize(("epoch", "recovered"), [(RIGHT, True), (WRONG, False), (MISSING, False)])
async def test_recovery_where_nothing_was_ever_published(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    variant: Variant,
    epoch: str,
    recovered: bool,
) -> None:
    channel = f"recover:{unique}"
    client = await connect(serve(**variant.options))
    right = await epoch_of(client, channel)
    asked = {RIGHT: right, WRONG: "other", MISSING: None}[epoch]

    result = await client.result("subscribe", {"channel": channel} | variant.since(0, asked))

    assert result == variant.answer(0, right, [], recovered=recovered)


async def test_first_publication_continues_the_position_told_before_it(
    serve: Serve, connect: Connect, unique: str, format_name: str, variant: Variant
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    client = await connect(server)
    epoch = await epoch_of(client, channel)
    publish(server, channel, range(1, 3))

    result = await client.result("subscribe", {"channel": channel} | variant.since(0, epoch))

    assert result == variant.answer(2, epoch, [1, 2], recovered=True)


async def test_subscribe_without_recovery_tells_the_position_and_brings_nothing(
    serve: Serve, connect: Connect, unique: str, format_name: str, variant: Variant
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    client = await connect(server)
    publish(server, channel, range(1, 3))

    params = {"channel": channel} | variant.since(1, "x") | {"recover": False}
    result = await client.result("subscribe", params)

    assert result == variant.answer(2, result["epoch"], [], recovered=False)
    publish(server, channel, range(3, 4))
    assert await client.publication() == {variant.field: 3, "data": {"n": 3}}


@pytest.mark.parametrize(
    "position",
    [{"seq": 5}, {"offset": 5}, {"seq": 5, "offset": 1}, {"seq": 0, "gen": 0, "offset": 5}],
    ids=["seq", "offset", "seq wins over offset", "offset when seq and gen are 0"],
)
async def test_either_form_of_the_position_is_understood_in_both_variants(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    variant: Variant,
    position: dict[str, int],
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    client = await connect(server)
    publish(server, channel, range(1, 7))
    epoch = await epoch_of(client, channel)
    params = {"channel": channel, "recover": True, "epoch": epoch}

    result = await client.result("subscribe", params | position)

    assert result == variant.answer(6, epoch, [6], recovered=True)


async def test_gen_counts_so_much_that_it_lies_beyond_the_top(
    serve: Serve, connect: Connect, unique: str, format_name: str, variant: Variant
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    client = await connect(server)
    publish(server, channel, range(1, 7))
    epoch = await epoch_of(client, channel)
    params = {"channel": channel, "recover": True, "epoch": epoch, "seq": 5, "gen": 1}

    result = await client.result("subscribe", params)

    assert result == variant.answer(6, epoch, [], recovered=False)


async def test_recovered_publication_of_a_client_keeps_its_info(
    serve: Serve, connect: Connect, unique: str, format_name: str, variant: Variant
) -> None:
    channel = f"recover:{unique}"
    client = await connect(serve(**variant.options))
    epoch = await epoch_of(client, channel)
    await client.result("publish", {"channel": channel, "data": {"n": 1}})

    result = await client.result("subscribe", {"channel": channel} | variant.since(0, epoch))

    info = {"user": "17", "client": client.client}
    assert result["publications"] == [{variant.field: 1, "data": {"n": 1}, "info": info}]


# server-side subscriptions


@pytest.mark.parametrize(
    ("offset", "offsets", "recovered"), [(6, [], True), (4, [5, 6], True), (1, [4, 5, 6], False)]
)
async def test_server_side_subscription_is_recovered_by_connect(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    variant: Variant,
    offset: int,
    offsets: list[int],
    recovered: bool,
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    publish(server, channel, range(1, 7))
    epoch = await epoch_of(await connect(server), channel)
    client = await connect(server, connected=False)
    subs = {channel: variant.since(offset, epoch), "unknown": {"recover": True}, "null": None}
    token = connection_token("17", channels=[channel])

    result = await client.result("connect", {"token": token, "subs": subs})

    assert result["subs"] == {channel: variant.answer(6, epoch, offsets, recovered=recovered)}
    publish(server, channel, range(7, 8))
    assert await client.publication() == {variant.field: 7, "data": {"n": 7}}


async def test_server_side_subscription_is_not_recovered_unasked(
    serve: Serve, connect: Connect, unique: str, format_name: str, variant: Variant
) -> None:
    server, channel = serve(**variant.options), f"recover:{unique}"
    publish(server, channel, range(1, 3))
    client = await connect(server, connected=False)
    token = connection_token("17", channels=[channel])

    subs = (await client.result("connect", {"token": token}))["subs"]

    epoch = subs[channel]["epoch"]
    assert subs == {channel: variant.answer(2, epoch, [], recovered=False)}
