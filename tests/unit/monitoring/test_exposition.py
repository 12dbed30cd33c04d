"""The text of metrics: both formats, as the parsers of prometheus-client read them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from realtime.config.reader import load
from realtime.metrics import Durations, Tally
from realtime.monitoring import exposition, figures, pending_rows
from realtime.monitoring.table import COUNTER, METRICS
from realtime.node.hooks import Hooks
from realtime.node.node import Node
from realtime.timers import Timers
from tests.unit.monitoring.counted_rows import CountedRows
from tests.unit.parts import RecordingClient
from tests.unit.suspended_engine import ClusterEngine

OPTIONS = {"namespaces": [{"name": "ns"}], "metrics_key": "a-key-of-the-metrics"}

PARSERS: dict[str, tuple[str, Callable[[str], Iterable[Any]]]] = {
    "prometheus": ("", parse_prometheus),
    "openmetrics": ("application/openmetrics-text; version=1.0.0", parse_openmetrics),
}


class SomeHooks(Hooks):
    """Hooks that have answered: each kind once."""

    def __init__(self) -> None:
        self.seconds = {"rpc": Durations()}
        self.seconds["rpc"].add(0.3)


@pytest.fixture
async def node() -> Any:
    """A node with Redis' part played by memory, where each metric has a value."""
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(OPTIONS), engine, SomeHooks())
    await node.start()
    node.counters.disconnects.add("3008")
    node.counters.command_errors.add("subscribe", "103")
    node.counters.recoveries.add("recovered")
    node.hub.add(RecordingClient())
    node.hub.add_subscription("ns:a", RecordingClient(), node.config.channel)
    node.hub.feeds["ns:a"].deliveries.count += 3
    yield node
    await node.stop()


async def read(node: Node) -> dict[str, Any]:
    return {
        **await figures.of_process(node),
        **await figures.of_service(node),
        **await pending_rows.Counter().read(CountedRows()),
    }


@pytest.mark.parametrize("name", PARSERS)
async def test_text_has_each_metric_of_the_table_and_no_other(node: Node, name: str) -> None:
    accept, parse = PARSERS[name]
    families = list(parse(exposition.text(await read(node), accept).body.decode()))
    described = {
        (each.name + ("_total" if each.type == COUNTER else ""), each.type, each.documentation)
        for each in families
    }
    assert described == {(each.name, each.type, each.meaning) for each in METRICS.values()}


@pytest.mark.parametrize("name", PARSERS)
async def test_labels_are_those_of_the_table(node: Node, name: str) -> None:
    accept, parse = PARSERS[name]
    for family in parse(exposition.text(await read(node), accept).body.decode()):
        metric = METRICS.get(family.name) or METRICS[f"{family.name}_total"]
        assert family.samples, f"{family.name} has no value"
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)


def test_table_keeps_to_the_rules_of_prometheus() -> None:
    for metric in METRICS.values():
        assert re.fullmatch(r"realtime(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.type == COUNTER)
        assert not re.search(
            r"_(milliseconds|ms|minutes|count|sum|bucket|gauge|info)$", metric.name
        )
        assert re.fullmatch(r"[A-Z0-9].*\.", metric.meaning)
        assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)
        assert "le" not in metric.labels


async def test_values_are_those_of_the_node(node: Node) -> None:
    values = {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in parse_prometheus(exposition.text(await read(node), "").body.decode())
        for sample in family.samples
    }

    assert values["realtime_connections", "v1", "websocket"] == 1
    assert values["realtime_channels", "ns"] == 1
    assert values["realtime_delivered_total", "ns"] == 3
    assert values["realtime_disconnects_total", "3008"] == 1
    assert values["realtime_command_errors_total", "103", "subscribe"] == 1
    assert values["realtime_hook_seconds_count", "rpc"] == 1
    assert values["realtime_hook_seconds_bucket", "rpc", "0.25"] == 0
    assert values["realtime_hook_seconds_bucket", "rpc", "0.5"] == 1
    assert values["realtime_service_nodes",] == 1
    assert values["realtime_service_delivered",] == 3


def test_hostile_labels_are_text_in_both_formats() -> None:
    label = 'a"\\\n} 1\n# EOF\n'
    values: figures.Figures = {"realtime_disconnects_total": {(label,): 1}}
    for accept, parse in PARSERS.values():
        (family,) = parse(exposition.text(values, accept).body.decode())
        assert [sample.labels for sample in family.samples] == [{"code": label}]


def test_tally_counts_labels_beyond_its_bound_together() -> None:
    tally = Tally()
    for code in range(Tally.MAX_LABELS + 5):
        tally.add("rpc", str(code))
    tally.add("rpc", "0")
    counts = tally.counts()
    assert len(counts) == Tally.MAX_LABELS + 1
    assert (counts["rpc", "0"], counts[Tally.OTHER, Tally.OTHER]) == (2, 5)
