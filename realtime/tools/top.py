"""top: the nodes of the service, its busiest channels, and its namespaces, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple, get_args

from django.core.management.base import CommandError, CommandParser
from msgspec import Struct

from realtime.errors import EngineUnavailable, NotServing
from realtime.operators.questions import MAX_BUSY_CHANNELS, NodeFigures, Order
from realtime.operators.service_activity import ServiceActivity, activity
from realtime.serving import serving
from realtime.tools.base import (
    CommandResult,
    Options,
    SubCommand,
    count,
    cut,
    escape_for_terminal,
    number,
    table,
)
from realtime.tools.terminal import pause

NOT_HERE = (
    "Only processes that share a Redis or PostgreSQL can see each other (options redis_url and"
    " engine). With the memory engine, look at the metrics of the process that serves clients."
)
NAME_LENGTH = 48
"""Characters of a name that are shown."""
INTERVALS = (0.5, 60.0)
"""Seconds between two looks: the least and the most."""
UNKNOWN = "-"


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--once", action="store_true", help="look once, and end")
    parser.add_argument(
        "--interval",
        type=number(float, *INTERVALS, "number of seconds"),
        default=2.0,
        metavar="SECONDS",
        help="seconds between two looks, 0.5 to 60 (default: 2)",
    )
    parser.add_argument(
        "--sort",
        choices=get_args(Order),
        default="publications",
        help="what makes a channel one of the busiest (default: publications)",
    )
    parser.add_argument(
        "--limit",
        type=number(int, 1, MAX_BUSY_CHANNELS),
        default=20,
        metavar="NUMBER",
        help=f"channels to show, 1 to {MAX_BUSY_CHANNELS} (default: 20)",
    )


# rates, from two looks


class NodeRow(Struct, frozen=True):
    """A node with its rates; None where there is no look before this one."""

    figures: NodeFigures
    published: float | None
    delivered: float | None
    """Publications in a second."""
    cpu: float | None
    """CPU seconds in a second."""


class NamespaceRow(Struct, frozen=True):
    """A namespace with its rate."""

    namespace: str
    subscribers: int
    delivered: float | None


class ServiceReading(NamedTuple):
    """What there was to see at one time."""

    activity: ServiceActivity
    nodes: list[NodeRow]
    namespaces: list[NamespaceRow]


def compare(now: ServiceActivity, before: ServiceActivity | None) -> ServiceReading:
    """Return the state of the service, with the rates since the look before."""
    earlier = {} if before is None else {node.node: node for node in before.nodes}
    rows = [_row(node, earlier.get(node.node)) for node in now.nodes]
    seconds = {
        node.node: node.uptime - earlier[node.node].uptime
        for node in now.nodes
        if node.node in earlier
    }
    counted = {} if before is None else {each.namespace: each for each in before.namespaces}
    namespaces = []
    for each in now.namespaces:
        rate = None
        if each.namespace in counted:
            delivered = counted[each.namespace].delivered
            rate = sum(
                _rate(total - delivered[node], seconds.get(node, 0)) or 0
                for node, total in each.delivered.items()
                if node in delivered
            )
        namespaces.append(NamespaceRow(each.namespace, each.subscribers, rate))
    return ServiceReading(now, rows, namespaces)


def _row(node: NodeFigures, before: NodeFigures | None) -> NodeRow:
    if before is None:
        return NodeRow(node, None, None, None)
    seconds = node.uptime - before.uptime
    return NodeRow(
        node,
        _rate(node.published - before.published, seconds),
        _rate(node.delivered - before.delivered, seconds),
        _rate(node.cpu_seconds - before.cpu_seconds, seconds),
    )


def _rate(count: float, seconds: float) -> float | None:
    return max(0.0, count) / seconds if seconds > 0 else None


# looking


def _run(options: Options) -> Iterator[CommandResult]:
    activity = _ask(options)
    while True:
        if options["once"]:
            pause(options["interval"])
        before = activity
        try:
            activity = _ask(options)
        except EngineUnavailable as error:
            if options["once"]:
                raise
            message = f"{serving.server_name()} is not available: {error}"
            value = {"error": {"message": message}}
            yield CommandResult(escape_for_terminal(message), value, redraws=True)
        else:
            look = compare(activity, before)
            yield CommandResult(_show(look), _value(look), redraws=not options["once"])
        if options["once"]:
            return
        pause(options["interval"])


def _ask(options: Options) -> ServiceActivity:
    limit, order = options["limit"], options["sort"]
    try:
        return serving.call(lambda member: activity(member, limit, order))
    except NotServing:
        raise CommandError(NOT_HERE) from None


def _value(look: ServiceReading) -> object:
    return {
        "nodes": [{**_fields(row.figures), "rates": _rates(row)} for row in look.nodes],
        "missing": look.activity.missing,
        "channels": look.activity.channels,
        "namespaces": look.namespaces,
    }


def _fields(node: NodeFigures) -> dict[str, object]:
    return {name: getattr(node, name) for name in node.__struct_fields__}


def _rates(row: NodeRow) -> dict[str, float | None]:
    return {"published": row.published, "delivered": row.delivered, "cpu": row.cpu}


def _show(look: ServiceReading) -> str:
    nodes, missing = look.nodes, look.activity.missing
    connections = sum(row.figures.connections for row in nodes)
    parts = [
        count(len(nodes), "node"),
        count(connections, "connection"),
        f"{_number(_total([row.published for row in nodes]))} published/s",
        f"{_number(_total([row.delivered for row in nodes]))} delivered/s",
        datetime.now(UTC).strftime("%H:%M:%S UTC"),
    ]
    lines = [", ".join(parts)]
    lines += [f"No answer from {cut(name, NAME_LENGTH)}" for name in missing]
    lines += ["", table([NODE_HEADING, *map(_node_cells, nodes)])]
    if look.activity.channels:
        rows = [
            (cut(each.channel, NAME_LENGTH), str(each.subscribers), _number(each.publications))
            for each in look.activity.channels
        ]
        lines += ["", table([("CHANNEL", "SUBSCRIBERS", "PUBLICATIONS/S"), *rows])]
    if look.namespaces:
        names = [
            (
                cut(each.namespace, NAME_LENGTH) or "(top level)",
                str(each.subscribers),
                _number(each.delivered),
            )
            for each in look.namespaces
        ]
        lines += ["", table([("NAMESPACE", "SUBSCRIBERS", "DELIVERED/S"), *names])]
    return "\n".join([*lines, ""])


NODE_HEADING = (
    *("NODE", "AGE", "CLIENTS", "SUBSCRIPTIONS", "PUBLISHED/S", "DELIVERED/S"),
    *("LAG", "CPU", "MEMORY", "STATE"),
)


def _node_cells(row: NodeRow) -> tuple[str, ...]:
    node = row.figures
    return (
        cut(node.name, NAME_LENGTH),
        _age(node.uptime),
        str(node.connections),
        str(node.subscriptions),
        _number(row.published),
        _number(row.delivered),
        f"{node.loop_lag * 1000:.0f} ms",
        UNKNOWN if row.cpu is None else f"{row.cpu * 100:.0f} %",
        UNKNOWN if node.memory is None else f"{node.memory / 2**20:.0f} MiB",
        "draining" if node.draining else "",
    )


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _total(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _number(rate: float | None) -> str:
    if rate is None:
        return UNKNOWN
    return f"{rate:.1f}" if rate < 100 else f"{rate:.0f}"


SUB_COMMANDS = (
    SubCommand(
        "top",
        "Show how busy the nodes are, the busiest channels, and the namespaces.",
        _add_arguments,
        _run,
        "Show the nodes of the service, the busiest channels, and the namespaces; look again\n"
        "every few seconds, until Ctrl-C. With --once it looks once, and ends. Nodes count\n"
        "publications by channel while this command asks them, and for ten seconds more.\n"
        "It needs Redis or PostgreSQL, by which it reaches the nodes.",
        goes_on=True,
    ),
)
