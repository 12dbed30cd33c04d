"""Exposition: figures as text that Prometheus reads, in its own format or that of OpenMetrics.

The package prometheus-client writes it. It comes with the extra `metrics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from realtime.metrics import Durations
from realtime.monitoring.figures import Figures, Labels, Value
from realtime.monitoring.table import COUNTER, GAUGE, METRICS

OPENMETRICS = "application/openmetrics-text"


class Text(NamedTuple):
    """Figures in one format."""

    body: bytes
    content_type: str


def text(figures: Figures, accept: str) -> Text:
    """Write figures.

    Args:
        figures: the values of some metrics of the table.
        accept: the header Accept of the request. With OpenMetrics in it, the format is that one.
    """
    collector = _Collected(figures)
    if OPENMETRICS in accept.lower():
        body: bytes = openmetrics.generate_latest(collector)  # type: ignore[no-untyped-call]
        return Text(body, openmetrics.CONTENT_TYPE_LATEST)
    return Text(exposition.generate_latest(collector), exposition.CONTENT_TYPE_PLAIN_0_0_4)


class _Collected(Collector):
    """Figures that are collected already, as the package reads them from a registry."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for name, values in self._figures.items():
            yield _family(name, values)


def _family(name: str, values: Mapping[Labels, Value]) -> Metric:
    metric = METRICS[name]
    family: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
    if metric.type == COUNTER:
        family = CounterMetricFamily(name, metric.meaning, labels=metric.labels)
    elif metric.type == GAUGE:
        family = GaugeMetricFamily(name, metric.meaning, labels=metric.labels)
    else:
        family = HistogramMetricFamily(name, metric.meaning, labels=metric.labels)
    for labels, value in sorted(values.items()):
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(value, Durations)
            family.add_metric(labels, _buckets(value), value.total)
        else:
            assert not isinstance(value, Durations)
            family.add_metric(labels, value)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Return the upper bound of each bucket, and how many took at most that long."""
    bounds = [*map(str, Durations.BOUNDS), "+Inf"]
    return list(zip(bounds, accumulate(durations.buckets), strict=True))
