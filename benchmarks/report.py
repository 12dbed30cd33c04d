"""The report: tables in Markdown, for people; and everything as JSON, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from benchmarks.cells import (
    CFAN,
    ONE_MEMORY,
    ONE_REDIS,
    OURS_DAPHNE,
    OURS_UVICORN,
    SHELL_DAPHNE,
    SHELL_UVICORN,
    STOCK_DAPHNE,
    STOCK_UVICORN,
    TWO_REDIS,
    VIEW_DAPHNE,
    VIEW_UVICORN,
)
from benchmarks.goals import GOALS
from benchmarks.measures.cluster import APUBLISH_KEPT, PUBLISH, PUBLISH_KEPT
from benchmarks.results import Results

Column = tuple[str, str, str]
"""Heading, metric, format."""

_OWN = {"daphne": OURS_DAPHNE, "uvicorn": OURS_UVICORN}


def text(results: Results, facts: Mapping[str, str]) -> str:
    """The whole report."""
    parts = [
        _facts(facts),
        *(_fan_out(results, window) for window in (1, 16, 64)),
        _latency(results),
        _memory(results),
        _many(results),
        _growth(results),
        _pairs(
            results,
            "Connections: handshake and subscription (stock: handshake and one message)",
            "connections",
            [
                ("connections/s", "connections_per_s", ",.0f"),
                ("CPU us/connection", "cpu_us_per_connection", ",.0f"),
            ],
            [(OURS_DAPHNE, STOCK_DAPHNE), (OURS_UVICORN, STOCK_UVICORN)],
        ),
        _pairs(
            results,
            "Commands: ping (stock: echo), 100 connections",
            "commands",
            [
                ("commands/s", "replies_per_s", ",.0f"),
                ("CPU us/command", "cpu_us_per_reply", ",.1f"),
                ("p99 ms", "p99_ms", ",.1f"),
            ],
            [(OURS_DAPHNE, STOCK_DAPHNE), (OURS_UVICORN, STOCK_UVICORN)],
        ),
        *(
            _pairs(
                results,
                f"POST /api, {batch} publication{'s' * (batch > 1)} a request, 32 clients",
                f"http x{batch}",
                [
                    ("publications/s", "publications_per_s", ",.0f"),
                    ("CPU us/publication", "cpu_us_per_publication", ",.1f"),
                    ("p99 ms", "p99_ms", ",.1f"),
                ],
                [(SHELL_DAPHNE, VIEW_DAPHNE), (SHELL_UVICORN, VIEW_UVICORN)],
            )
            for batch in (1, 100)
        ),
        *(_cluster(results, window) for window in (1, 16, 64)),
        _publish(results),
        _noise(results),
        _goals(results),
        _notes(results),
    ]
    return "\n".join(part for part in parts if part)


def data(results: Results, facts: Mapping[str, str]) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "machine": dict(facts),
        "samples": dict(results),
        "goals": [
            {"goal": goal.text, "limit": goal.limit, "at_most": goal.at_most, "value": value}
            for goal in GOALS
            for value in [goal.value(results)]
        ],
        "notes": results.notes,
    }


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), *(list(row) for row in rows)]
    if len(lines) == 1:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def row(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        others = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "| " + " | ".join([first, *others]) + " |"

    rule = "|" + "|".join(
        "-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)
    )
    return "\n".join([f"## {title}", "", row(lines[0]), rule + "|", *map(row, lines[1:]), ""])


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _ratio(value: float | None) -> str:
    """Three significant digits."""
    if value is None:
        return "-"
    return f"{value:.0f}x" if value >= 100 else f"{value:.3g}x"


def _fan_out(results: Results, window: int) -> str:
    measure = f"fanout w{window}"
    rows = []
    for cell in results.cells(measure):
        rates = results.values(measure, cell, "deliveries_per_s")
        rows.append(
            [
                cell,
                _number(results.median(measure, cell, "deliveries_per_s"), ",.0f"),
                f"{min(rates):,.0f} - {max(rates):,.0f}",
                _number(results.median(measure, cell, "cpu_us_per_delivery"), ",.2f"),
                _number(results.median(measure, cell, "p99_ms"), ",.0f"),
                _number(results.median(measure, cell, "deliveries_per_frame"), ",.1f"),
                _number(results.median(measure, cell, "server_cpu"), ".2f"),
                _number(results.median(measure, cell, "loader_cpu"), ".2f"),
                *(
                    _ratio(results.ratio(measure, "deliveries_per_s", own, cell))
                    for own in _OWN.values()
                ),
            ]
        )
    head = ["server", "deliveries/s", "min - max", "CPU us/delivery", "p99 ms"]
    head += ["deliveries/frame", "server cores", "loader cores"]
    head += [f"ours {name} / it" for name in _OWN]
    title = f"Fan-out to 1000 subscribers, {window} publication{'s' * (window > 1)} outstanding"
    return _table(title, head, rows)


def _latency(results: Results) -> str:
    rows = [
        [
            cell,
            _number(results.median("latency", cell, "rate"), "g"),
            _number(results.median("latency", cell, "p50_ms"), ",.1f"),
            _number(results.median("latency", cell, "p99_ms"), ",.1f"),
            *(_ratio(results.ratio("latency", "p99_ms", own, cell)) for own in _OWN.values()),
            _number(sum(results.values("latency", cell, "missing")), ",.0f"),
        ]
        for cell in results.cells("latency")
    ]
    head = ["server", "publications/s", "p50 ms", "p99 ms"]
    head += [f"p99, ours {name} / it" for name in _OWN]
    head += ["not delivered in 5 s"]
    return _table("Latency, 1000 subscribers, from the intended time", head, rows)


def _memory(results: Results) -> str:
    rows = [
        [
            cell,
            _number(results.median("memory", cell, "kib_per_connection"), ".1f"),
            _number(results.median("memory", cell, "connections_per_s"), ",.0f"),
            *(
                "-"
                if cell == CFAN
                else _ratio(results.ratio("memory", "kib_per_connection", own, cell))
                for own in _OWN.values()
            ),
        ]
        for cell in results.cells("memory")
    ]
    head = ["server", "KiB/connection", "connections/s", *(f"KiB, ours {o} / it" for o in _OWN)]
    return _table("Memory of 1000 idle, subscribed connections", head, rows)


def _many(results: Results) -> str:
    rows = [
        [
            cell,
            _number(results.median("many", cell, "connections"), ",.0f"),
            _number(results.median("many", cell, "failed"), ",.0f"),
            _number(results.median("many", cell, "kib_per_connection"), ".1f"),
            _number(results.median("many", cell, "idle_cpu"), ".1%"),
            _number(results.median("many", cell, "least_idle_cpu"), ".1%"),
        ]
        for cell in results.cells("many")
    ]
    head = ["server", "connections", "failed", "KiB/connection", "idle CPU", "between pings"]
    return _table("10 000 connections in one process", head, rows)


def _growth(results: Results) -> str:
    rows = []
    for measure, subscribers, channels in (
        ("growth 100", "100", "1"),
        ("growth 1000", "1,000", "1"),
        ("growth 5000", "5,000", "1"),
        ("growth 10000", "10,000", "1"),
        ("fanout w1", "1,000", "1 *"),
        ("spread 10", "1,000", "10 *"),
        ("spread 1000", "1,000", "1,000 *"),
    ):
        if "fanout" in measure and not results.cells("spread 10"):
            continue
        rows += [
            [
                cell,
                subscribers,
                channels,
                _number(results.median(measure, cell, "deliveries_per_s"), ",.0f"),
                _number(results.median(measure, cell, "cpu_us_per_delivery"), ",.2f"),
                _number(results.median(measure, cell, "p99_ms"), ",.1f"),
            ]
            for cell in results.cells(measure)
            if cell in _OWN.values()
        ]
    head = ["server", "subscribers", "channels", "deliveries/s", "CPU us/delivery", "p99 ms"]
    title = "Growth, 1 publication outstanding (*: in each channel)"
    return _table(title, head, sorted(rows, key=lambda row: row[0]))


def _pairs(
    results: Results,
    title: str,
    measure: str,
    columns: Sequence[Column],
    pairs: Sequence[tuple[str, str]],
) -> str:
    rows = []
    for ours, peer in pairs:
        for cell in (ours, peer):
            if cell in results.cells(measure):
                rows.append(
                    [cell]
                    + [
                        _number(results.median(measure, cell, metric), f)
                        for _, metric, f in columns
                    ]
                )
        if {ours, peer} <= set(results.cells(measure)):
            rows.append(
                ["  ours / peer"]
                + [_ratio(results.ratio(measure, metric, ours, peer)) for _, metric, _ in columns]
            )
    return _table(title, ["server", *(heading for heading, _, _ in columns)], rows)


def _cluster(results: Results, window: int) -> str:
    measure = f"cluster w{window}"
    rows = [
        [
            cell,
            _number(results.median(measure, cell, "deliveries_per_s"), ",.0f"),
            _number(results.median(measure, cell, "cpu_us_per_delivery"), ",.2f"),
            _number(results.median(measure, cell, "deliveries_per_frame"), ",.1f"),
            _number(results.median(measure, cell, "p99_ms"), ",.0f"),
            _number(results.median(measure, cell, "server_cpu"), ".2f"),
            _number(results.median(measure, cell, "redis_cpu"), ".2f"),
            _number(results.median(measure, cell, "loader_cpu"), ".2f"),
            _ratio(results.ratio(measure, "deliveries_per_s", TWO_REDIS, cell)),
            *(
                _ratio(results.ratio(measure, "cpu_us_per_delivery", cell, one))
                for one in (ONE_MEMORY, ONE_REDIS)
            ),
        ]
        for cell in results.cells(measure)
    ]
    head = ["service", "deliveries/s", "CPU us/delivery", "deliveries/frame", "p99 ms"]
    head += ["server cores", "Redis cores", "loader cores", "ours, 2 processes / it"]
    head += ["CPU, it / memory", "CPU, it / 1 with Redis"]
    title = f"Several processes, 1000 subscribers, {window} publication{'s' * (window > 1)}"
    return _table(f"{title} outstanding, daphne", head, rows)


def _publish(results: Results) -> str:
    ways = (PUBLISH, PUBLISH_KEPT, APUBLISH_KEPT)
    rows = [
        [
            cell,
            _number(results.median("publish", cell, "calls_per_s"), ",.0f"),
            _number(results.median("publish", cell, "cpu_us_per_call"), ",.1f"),
            _number(results.median("publish", cell, "redis_cpu"), ".2f"),
            *(_ratio(results.ratio("publish", "calls_per_s", ours, cell)) for ours in ways),
        ]
        for cell in results.cells("publish")
    ]
    head = ["way", "calls/s", "CPU us/call", "Redis cores"]
    head += [f"{way} / it" for way in ("publish", "with history", "apublish")]
    return _table("Publishing from processes without clients", head, rows)


def _noise(results: Results) -> str:
    rows = []
    for measure, cells in results:
        samples = [sample for samples in cells.values() for sample in samples]
        rows.append([measure])
        for metric in ("steal", "other"):
            values = [sample[metric] for sample in samples]
            rows[-1] += [f"{mean(values):.2f}", f"{max(values):.2f}"]
    head = ["measure", "steal, mean", "steal, worst", "other, mean", "other, worst"]
    title = "Noise: cores taken by the hypervisor (steal) and by other processes"
    return _table(title, head, rows)


def _goals(results: Results) -> str:
    rows = []
    for goal in GOALS:
        value = goal.value(results)
        limit = f"{'<=' if goal.at_most else '>='} {goal.limit:g}{goal.unit}"
        if value is None:
            rows.append([goal.text, limit, "-", "not measured"])
        else:
            verdict = "met" if goal.met(value) else "NOT MET"
            rows.append([goal.text, limit, f"{value:.3g}{goal.unit}", verdict])
    return _table("Goals (ours / peer)", ["goal", "limit", "measured", ""], rows)


def _facts(facts: Mapping[str, str]) -> str:
    return "\n".join(
        ["# Benchmarks", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    )


def _notes(results: Results) -> str:
    return (
        "\n".join(["## Not measured", "", *(f"- {note}" for note in results.notes), ""])
        if (results.notes)
        else ""
    )
