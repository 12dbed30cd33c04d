"""What charts of the last hour measure: the table of the charts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from .past import NodePast

Figure = Callable[[NodePast], Sequence[float]]
"""Returns the values of a node, in each of its samples."""


def rate(name: str) -> Figure:
    """Return a figure: what was counted in a second."""
    return lambda node: node.rates(name)


def closed(node: NodePast) -> Sequence[float]:
    """Return the connections that ended in a second, with any code."""
    columns = [node.rates(name) for name in node.names("closed:")]
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

    @classmethod
    def of(
        cls, name: str, title: str | Promise, label: str | Promise, figure: Figure, **how: Any
    ) -> ChartPlan:
        """Return a chart of one line. `how`: as for `Measure`."""
        return cls(name, title, (Measure(label, figure, **how),))


OF_SERVICE = (
    ChartPlan.of(
        "published", _("Published per second"), _("published per second"), rate("published")
    ),
    ChartPlan.of(
        "delivered", _("Delivered per second"), _("delivered per second"), rate("delivered")
    ),
    ChartPlan.of("connections", _("Clients"), _("clients"), state("connections")),
    ChartPlan(
        "opened",
        _("Connections a minute"),
        (
            Measure(_("opened"), rate("opened"), factor=60),
            Measure(_("closed"), closed, factor=60),
        ),
    ),
    ChartPlan(
        "refused",
        _("Refused a minute"),
        (
            Measure(_("commands"), rate("errors"), factor=60),
            Measure(_("connections"), rate("refused"), factor=60),
        ),
    ),
    ChartPlan.of("lag", _("Loop lag, ms"), _("loop lag in ms"), state("lag", 1e-3), over=max),
)
"""The charts of the overview."""

OF_NODE = (
    *OF_SERVICE,
    ChartPlan.of("commands", _("Commands per second"), _("commands per second"), rate("commands")),
    ChartPlan.of(
        "cpu", _("CPU, per cent of a core"), _("CPU in per cent"), rate("cpu"), factor=1e-4
    ),
    ChartPlan.of("memory", _("Memory, MB"), _("memory in MB"), state("memory", 1.024e-3)),
    ChartPlan.of(
        "redis",
        _("Heartbeat to the engine, ms"),
        _("heartbeat in ms"),
        state("redis", 1e-3),
        over=max,
    ),
)
"""The charts of a node."""
