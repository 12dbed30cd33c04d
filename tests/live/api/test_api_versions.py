"""Versions of publications, through both ways a site can serve `POST /api/<method>`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.live.api_client import BOTH, OPTIONS, start
from tests.live.api_methods import BAD_REQUEST, NOT_AVAILABLE, call, result
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
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
