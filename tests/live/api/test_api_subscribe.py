"""`POST /api/subscribe`, through both ways a site can serve it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.live.api_client import BOTH, OPTIONS, start
from tests.live.api_methods import call, result
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return start(serve, request.param, **OPTIONS)


async def test_subscribe_may_be_for_one_client(
    server: Server, connect: Callable[..., Any], unique: str
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
