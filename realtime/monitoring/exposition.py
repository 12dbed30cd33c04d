"""Exposition: figures as text that Prometheus reads, in its own format or that of OpenMetrics.

The package prometheus-client writes it. It comes with the extra `metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

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
from realtime.monitoring.table import COUNTER, GAUGE, HISTOGRAM, METRICS

OPENMETRICS = "application/openmetrics-text"


_FAMILIES: Mapping[str, Callable[..., Any]] = {
    COUNTER: CounterMetricFamily,
    GAUGE: GaugeMetricFamily,
    HISTOGRAM: HistogramMetricFamily,
}


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
        return (_family(name, values) for name, values in self._figures.items())


def _family(name: str, values: Mapping[Labels, Value]) -> Any:
    metric = METRICS[name]
    family = _FAMILIES[metric.type](name, metric.meaning, labels=metric.labels)
    for labels, value in sorted(values.items()):
        if isinstance(value, Durations):
            family.add_metric(labels, _buckets(value), value.total)
        else:
            family.add_metric(labels, value)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Return the upper bound of each bucket, and how many took at most that long."""
    bounds = [*map(str, Durations.BOUNDS), "+Inf"]
    return list(zip(bounds, accumulate(durations.buckets), strict=True))
