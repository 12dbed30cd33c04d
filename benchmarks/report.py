"""The report: tables in Markdown, for people; and everything as JSON, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from benchmarks.cells import (
    CFAN,
    FIRST,
    FRONT_DAPHNE,
    FRONT_UVICORN,
    ONE_MEMORY,
    ONE_REDIS,
    OURS_DAPHNE,
    OURS_UVICORN,
    STOCK_DAPHNE,
    STOCK_UVICORN,
    TWO_REDIS,
    VIEW_DAPHNE,
    VIEW_UVICORN,
)
from benchmarks.goals import GOALS
from benchmarks.measures.cluster import APUBLISH_KEPT, PUBLISH, PUBLISH_KEPT
from benchmarks.results import Results
from benchmarks.tables import Column, headings, medians, ratio, table

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
                [(FRONT_DAPHNE, VIEW_DAPHNE), (FRONT_UVICORN, VIEW_UVICORN)],
            )
            for batch in (1, 100)
        ),
        _generations(results),
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


def _against(results: Results, measure: str, metric: str, cell: str) -> list[str]:
    """Ours, under each server, divided by the cell."""
    return [ratio(results.ratio(measure, metric, own, cell)) for own in _OWN.values()]


def _fan_out(results: Results, window: int) -> str:
    measure = f"fanout w{window}"
    speed = [("deliveries/s", "deliveries_per_s", ",.0f")]
    others = [
        ("CPU us/delivery", "cpu_us_per_delivery", ",.2f"),
        ("p99 ms", "p99_ms", ",.0f"),
        ("deliveries/frame", "deliveries_per_frame", ",.1f"),
        ("server cores", "server_cpu", ".2f"),
        ("loader cores", "loader_cpu", ".2f"),
    ]
    rows = []
    for cell in results.cells(measure):
        rates = results.values(measure, cell, "deliveries_per_s")
        rows.append(
            [
                cell,
                *medians(results, measure, cell, speed),
                f"{min(rates):,.0f} - {max(rates):,.0f}",
                *medians(results, measure, cell, others),
                *_against(results, measure, "deliveries_per_s", cell),
            ]
        )
    head = ["server", *headings(speed), "min - max", *headings(others)]
    head += [f"ours {name} / it" for name in _OWN]
    title = f"Fan-out to 1000 subscribers, {window} publication{'s' * (window > 1)} outstanding"
    return table(title, head, rows)


def _latency(results: Results) -> str:
    columns = [
        ("publications/s", "rate", "g"),
        ("p50 ms", "p50_ms", ",.1f"),
        ("p99 ms", "p99_ms", ",.1f"),
    ]
    rows = [
        [
            cell,
            *medians(results, "latency", cell, columns),
            *_against(results, "latency", "p99_ms", cell),
            f"{sum(results.values('latency', cell, 'missing')):,.0f}",
        ]
        for cell in results.cells("latency")
    ]
    head = ["server", *headings(columns), *(f"p99, ours {name} / it" for name in _OWN)]
    head += ["not delivered in 5 s"]
    return table("Latency, 1000 subscribers, from the intended time", head, rows)


def _memory(results: Results) -> str:
    columns = [
        ("KiB/connection", "kib_per_connection", ".1f"),
        ("connections/s", "connections_per_s", ",.0f"),
    ]
    rows = [
        [
            cell,
            *medians(results, "memory", cell, columns),
            # cfan keeps nothing about a connection
            *(
                ["-" for _ in _OWN]
                if cell == CFAN
                else _against(results, "memory", "kib_per_connection", cell)
            ),
        ]
        for cell in results.cells("memory")
    ]
    head = ["server", *headings(columns), *(f"KiB, ours {name} / it" for name in _OWN)]
    return table("Memory of 1000 idle, subscribed connections", head, rows)


def _many(results: Results) -> str:
    columns = [
        ("connections", "connections", ",.0f"),
        ("failed", "failed", ",.0f"),
        ("KiB/connection", "kib_per_connection", ".1f"),
        ("idle CPU", "idle_cpu", ".1%"),
        ("between pings", "least_idle_cpu", ".1%"),
    ]
    rows = [[cell, *medians(results, "many", cell, columns)] for cell in results.cells("many")]
    return table("10 000 connections in one process", ["server", *headings(columns)], rows)


def _growth(results: Results) -> str:
    columns = [
        ("deliveries/s", "deliveries_per_s", ",.0f"),
        ("CPU us/delivery", "cpu_us_per_delivery", ",.2f"),
        ("p99 ms", "p99_ms", ",.1f"),
    ]
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
            [cell, subscribers, channels, *medians(results, measure, cell, columns)]
            for cell in results.cells(measure)
            if cell in _OWN.values()
        ]
    head = ["server", "subscribers", "channels", *headings(columns)]
    title = "Growth, 1 publication outstanding (*: in each channel)"
    return table(title, head, sorted(rows, key=lambda row: row[0]))


def _pairs(
    results: Results,
    title: str,
    measure: str,
    columns: Sequence[Column],
    pairs: Sequence[tuple[str, str]],
) -> str:
    measured = results.cells(measure)
    rows = []
    for ours, peer in pairs:
        both = [cell for cell in (ours, peer) if cell in measured]
        rows += [[cell, *medians(results, measure, cell, columns)] for cell in both]
        if len(both) == 2:
            ratios = (results.ratio(measure, metric, ours, peer) for _, metric, _ in columns)
            rows.append(["  ours / peer", *map(ratio, ratios)])
    return table(title, ["server", *headings(columns)], rows)


def _cluster(results: Results, window: int) -> str:
    measure = f"cluster w{window}"
    columns = [
        ("deliveries/s", "deliveries_per_s", ",.0f"),
        ("CPU us/delivery", "cpu_us_per_delivery", ",.2f"),
        ("deliveries/frame", "deliveries_per_frame", ",.1f"),
        ("p99 ms", "p99_ms", ",.0f"),
        ("server cores", "server_cpu", ".2f"),
        ("Redis cores", "redis_cpu", ".2f"),
        ("loader cores", "loader_cpu", ".2f"),
    ]
    rows = [
        [
            cell,
            *medians(results, measure, cell, columns),
            ratio(results.ratio(measure, "deliveries_per_s", TWO_REDIS, cell)),
            *(
                ratio(results.ratio(measure, "cpu_us_per_delivery", cell, one))
                for one in (ONE_MEMORY, ONE_REDIS)
            ),
        ]
        for cell in results.cells(measure)
    ]
    head = ["service", *headings(columns), "ours, 2 processes / it"]
    head += ["CPU, it / memory", "CPU, it / 1 with Redis"]
    title = f"Several processes, 1000 subscribers, {window} publication{'s' * (window > 1)}"
    return table(f"{title} outstanding, daphne", head, rows)


def _generations(results: Results) -> str:
    columns = {
        "generations w16": [
            ("deliveries/s", "deliveries_per_s", ",.0f"),
            ("CPU us/delivery", "cpu_us_per_delivery", ",.2f"),
        ],
        "generations memory": [("KiB/connection", "kib_per_connection", ".1f")],
        "generations many": [
            ("connections", "connections", ",.0f"),
            ("KiB/connection", "kib_per_connection", ".1f"),
            ("idle CPU", "idle_cpu", ".1%"),
        ],
    }
    rows = []
    for cell in results.cells("generations w16"):
        first = f"{FIRST}, {cell.rpartition(', ')[2]}"
        metrics = ("deliveries_per_s", "cpu_us_per_delivery")
        rows.append(
            [
                cell,
                *(
                    figure
                    for part in columns
                    for figure in medians(results, part, cell, columns[part])
                ),
            ]
        )
        rows[-1] += [ratio(results.ratio("generations w16", each, cell, first)) for each in metrics]
    head = ["clients", *(heading for part in columns.values() for heading in headings(part))]
    head += ["deliveries/s, it / first", "CPU, it / first"]
    title = (
        "Generations: 1000 subscribers, 16 publications outstanding; 10 000 idle, ping each 25 s"
    )
    return table(title, head, rows)


def _publish(results: Results) -> str:
    ways = {"publish": PUBLISH, "with history": PUBLISH_KEPT, "apublish": APUBLISH_KEPT}
    columns = [
        ("calls/s", "calls_per_s", ",.0f"),
        ("CPU us/call", "cpu_us_per_call", ",.1f"),
        ("Redis cores", "redis_cpu", ".2f"),
    ]
    rows = [
        [
            cell,
            *medians(results, "publish", cell, columns),
            *(ratio(results.ratio("publish", "calls_per_s", ours, cell)) for ours in ways.values()),
        ]
        for cell in results.cells("publish")
    ]
    head = ["way", *headings(columns), *(f"{way} / it" for way in ways)]
    return table("Publishing from processes without clients", head, rows)


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
    return table(title, head, rows)


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
    return table("Goals (ours / peer)", ["goal", "limit", "measured", ""], rows)


def _facts(facts: Mapping[str, str]) -> str:
    return "\n".join(
        ["# Benchmarks", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    )


def _notes(results: Results) -> str:
    if not results.notes:
        return ""
    return "\n".join(["## Not measured", "", *(f"- {note}" for note in results.notes), ""])
