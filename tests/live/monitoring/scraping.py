"""Read the metrics of a server, as Prometheus does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from tests.live.api_client import post
from tests.server import Server

KEY = "a-key-that-only-prometheus-has"
PATH = "/realtime/metrics"
OPTIONS: Mapping[str, Any] = {
    "metrics_key": KEY,
    "namespaces": [
        {"name": "open", "publish": True},
        {
            "name": "kept",
            "history_size": 5,
            "history_lifetime": 300,
            "history_recover": True,
        },
    ],
}


def health(server: Server, path: str) -> int:
    """Return the status of /live or /ready."""
    return post(server, method="GET", path=f"/realtime{path}", headers={}).status


Values: TypeAlias = dict[tuple[str, ...], float]
"""Name of a sample and the values of its labels, by the names of the labels → value."""


def scrape(server: Server, query: str = "") -> Values:
    """Return the values of all metrics."""
    headers = {"Authorization": f"Bearer {KEY}"}
    answer = post(server, method="GET", path=PATH + query, headers=headers)
    assert answer.status == 200, answer
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
