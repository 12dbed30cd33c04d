"""`POST /api/publish` with versions, and `POST /api/subscribe`, through both ways to serve them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.api_client import BOTH, OPTIONS, start
from tests.live.api_methods import BAD_REQUEST, NOT_AVAILABLE, call, result
from tests.live.configurations import Connect, Serve
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    return start(serve, request.param, **OPTIONS)


def test_an_older_version_is_not_published(server: Server, unique: str) -> None:
    channel = f"kept:{unique}"
    first = result(server, "publish", channel=channel, data=1, version=2, version_epoch="a")
    assert result(server, "publish", channel=channel, data=2, version=1) == first
    assert result(server, "publish", channel=channel, data=3, version=2) == first
    last = result(server, "publish", channel=channel, data=4, version=1, version_epoch="b")
    responses = result(server, "broadcast", channels=[channel, unique], data=5, version=1)

    kept = result(server, "history", channel=channel, limit=-1)["publications"]
    assert [publication["data"] for publication in kept] == [1, 4]
    assert responses["responses"] == [{"result": last}, NOT_AVAILABLE]


@pytest.mark.parametrize(
    ("params", "answer"),
    [
        ({"version": 2}, NOT_AVAILABLE),
        ({"version": 2, "channel": "kept:a", "skip_history": True}, NOT_AVAILABLE),
        ({"version": 2**64}, BAD_REQUEST),
        ({"version": 1, "version_epoch": "x" * 256}, BAD_REQUEST),
    ],
    ids=str,
)
def test_versions_that_cannot_be_compared_are_refused(
    server: Server, params: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert call(server, "publish", **{"channel": "a", "data": 1, **params}) == answer


async def test_subscribe_may_be_for_one_client(
    server: Server, connect: Connect, unique: str
) -> None:
    one, other = [await connect(server, user=unique) for _ in range(2)]
    channel = f"kept:{unique}"

    params = {"user": unique, "channel": channel, "client": one.client, "expire_at": 2**33}
    assert result(server, "subscribe", **params, b64info="NQ==", data={"n": 1}) == {}

    assert await one.push() == {"type": 5, "channel": channel, "data": {}}
    present = result(server, "presence", channel=channel)["presence"]
    assert {client: info["chan_info"] for client, info in present.items()} == {one.client: 5}
    result(server, "publish", channel=channel, data=1)
    assert (await one.publication())["data"] == 1
    await other.quiet()


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"expire_at": 5}, 100),
        ({"expire_at": -1}, 100),
        ({"b64info": "?"}, 107),
        ({"b64data": "bm90IEpTT04="}, 107),
        ({"recover_since": {"offset": 2**64}}, 107),
    ],
    ids=str,
)
def test_subscription_that_cannot_be_is_refused(
    server: Server, params: dict[str, Any], code: int
) -> None:
    answer = call(server, "subscribe", user="17", channel="kept:a", **params)
    assert answer["error"]["code"] == code
