"""Tables in Markdown, and the figures in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.results import Results

Column = tuple[str, str, str]
"""Heading, metric, format."""


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table under its title; empty without rows. All columns but the first are figures."""
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


def headings(columns: Iterable[Column]) -> list[str]:
    """What stands above these columns."""
    return [heading for heading, _, _ in columns]


def medians(results: Results, measure: str, cell: str, columns: Iterable[Column]) -> list[str]:
    """The figures of one cell; "-" for what was not measured."""
    values = ((results.median(measure, cell, metric), form) for _, metric, form in columns)
    return ["-" if value is None else format(value, form) for value, form in values]


def ratio(value: float | None) -> str:
    """Three significant digits."""
    if value is None:
        return "-"
    return f"{value:.0f}x" if value >= 100 else f"{value:.3g}x"
