"""Metrics of a real server: who may read them, and whether they are true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.live.api_client import post
from tests.live.monitoring.churn import churn, counted
from tests.live.monitoring.scraping import KEY, OPTIONS, PATH, scrape
from tests.server import Server

BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**OPTIONS)


async def test_counts_equal_those_of_the_clients_after_a_churn(server: Server) -> None:
    before = scrape(server)
    seen = await churn(server, 60)
    assert counted(server, before) == seen


async def test_gauges_follow_clients_and_channels(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": f"open:{unique}"})
    await client.result("subscribe", {"channel": unique})

    values = scrape(server)

    assert values["realtime_connections", "v1", "websocket"] == 1
    assert values["realtime_users",] == 1
    assert (values["realtime_channels", "open"], values["realtime_channels", ""]) == (1, 1)
    assert values["realtime_subscriptions",] == 2
    assert values["realtime_draining",] == 0
    assert scrape(server, "?scope=service")["realtime_service_connections",] == 1


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", BEARER, 200),
        ("HEAD", BEARER, 200),
        ("GET", {"X-API-Key": KEY}, 200),
        ("GET", {}, 401),
        ("GET", {"Authorization": "Bearer wrong"}, 401),
        ("POST", BEARER, 405),
        ("POST", {}, 401),
    ],
)
def test_metrics_need_the_key(
    server: Server, method: str, headers: dict[str, str], status: int
) -> None:
    answer = post(server, method=method, path=PATH, headers=headers)
    assert answer.status == status
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers.get("Allow") == ("GET, HEAD" if status == 405 else None)


def test_prometheus_can_have_openmetrics(server: Server) -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.4"}
    answer = post(server, method="GET", path=PATH, headers={**BEARER, **accept})
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert list(text_string_to_metric_families(answer.body.decode()))


def test_path_is_the_site_s_while_metrics_are_off(serve: Callable[..., Server]) -> None:
    assert post(serve(), method="GET", path=PATH, headers={}).status == 404


@pytest.mark.parametrize("query", ["?scope=" + "a" * 500, "?&&&=%ff", "?scope&scope=x"])
def test_hostile_queries_get_the_metrics_of_the_process(server: Server, query: str) -> None:
    assert ("realtime_users",) in scrape(server, query)
