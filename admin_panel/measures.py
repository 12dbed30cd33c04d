"""What charts of the last hour measure: the table of the charts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from .past import NodePast

Figure = Callable[[NodePast], Sequence[float]]
"""Returns the values of a node, in each of its samples."""


def rate(*names: str) -> Figure:
    """Return a figure: what was counted in a second, added up."""
    return lambda node: _added(node, names)


def closed(node: NodePast) -> Sequence[float]:
    """Return the connections that ended in a second."""
    return _added(node, node.names("closed:"))


def _added(node: NodePast, names: Sequence[str]) -> Sequence[float]:
    if len(names) == 1:
        return node.rates(names[0])
    columns = [node.rates(name) for name in names]
    return [sum(values) for values in zip(*columns, strict=True)] or [0.0] * len(node.slots)


def state(name: str, factor: float = 1) -> Figure:
    """Return a figure that goes up and down."""
    return lambda node: [value * factor for value in node.states(name)]


class Measure(NamedTuple):
    """One line of a chart."""

    label: str | Promise
    figure: Figure
    over: Callable[[float, float], float] = operator.add
    """What makes one value of those of two nodes."""
    factor: float = 1


class ChartPlan(NamedTuple):
    """A chart without its values."""

    name: str
    title: str | Promise
    measures: tuple[Measure, ...]


OF_SERVICE = (
    ChartPlan(
        "published",
        gettext_lazy("Published per second"),
        (Measure(gettext_lazy("published per second"), rate("published")),),
    ),
    ChartPlan(
        "delivered",
        gettext_lazy("Delivered per second"),
        (Measure(gettext_lazy("delivered per second"), rate("delivered")),),
    ),
    ChartPlan(
        "connections",
        gettext_lazy("Clients"),
        (Measure(gettext_lazy("clients"), state("connections")),),
    ),
    ChartPlan(
        "opened",
        gettext_lazy("Connections a minute"),
        (
            Measure(gettext_lazy("opened"), rate("opened"), factor=60),
            Measure(gettext_lazy("closed"), closed, factor=60),
        ),
    ),
    ChartPlan(
        "refused",
        gettext_lazy("Refused a minute"),
        (
            Measure(gettext_lazy("commands"), rate("errors"), factor=60),
            Measure(gettext_lazy("connections"), rate("refused"), factor=60),
        ),
    ),
    ChartPlan(
        "lag",
        gettext_lazy("Loop lag, ms"),
        (Measure(gettext_lazy("loop lag in ms"), state("lag", 1e-3), over=max),),
    ),
)
"""The charts of the overview."""

OF_NODE = (
    *OF_SERVICE,
    ChartPlan(
        "commands",
        gettext_lazy("Commands per second"),
        (Measure(gettext_lazy("commands per second"), rate("commands")),),
    ),
    ChartPlan(
        "cpu",
        gettext_lazy("CPU, per cent of a core"),
        (Measure(gettext_lazy("CPU in per cent"), rate("cpu"), factor=1e-4),),
    ),
    ChartPlan(
        "memory",
        gettext_lazy("Memory, MB"),
        (Measure(gettext_lazy("memory in MB"), state("memory", 1.024e-3)),),
    ),
    ChartPlan(
        "redis",
        gettext_lazy("Heartbeat to the engine, ms"),
        (Measure(gettext_lazy("heartbeat in ms"), state("redis", 1e-3), over=max),),
    ),
)
"""The charts of a node."""
