"""What a sub-command is: its arguments, what it does, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from django.core.management.base import CommandParser

Options = Mapping[str, Any]
"""Name of an argument → its value."""


class Answer(NamedTuple):
    """What a sub-command found out or did."""

    text: str
    """For people."""
    value: object
    """For programs: anything msgspec can write as JSON."""
    failure: str = ""
    """Why the exit status is 1; empty: it is 0."""


class SubCommand(NamedTuple):
    """One sub-command.

    `run` raises CommandError, `realtime.Error`, EngineUnavailable, InvalidOptions, InvalidKey.
    """

    name: str
    help: str
    add_arguments: Callable[[CommandParser], None]
    run: Callable[[Options], Answer]
    description: str = ""
    """What `--help` says of it; empty: the same as `help`."""


def add_nothing(parser: CommandParser) -> None:
    """Of a sub-command without arguments."""


def shown(text: str) -> str:
    """Text that others chose, without what would steer a terminal."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows in columns; the first one is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def count(number: int, singular: str) -> str:
    """A number with its noun: "1 client", "2 clients"."""
    return f"{number} {singular}" if number == 1 else f"{number} {singular}s"
