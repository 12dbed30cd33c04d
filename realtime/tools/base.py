"""A sub-command: its arguments, its work and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from django.core.management.base import CommandParser

N = TypeVar("N", int, float)

Options = Mapping[str, Any]
"""Name of an argument → its value."""


class CommandResult(NamedTuple):
    """The result of a sub-command."""

    text: str
    """For terminals."""
    value: object
    """For `--json`: anything that msgspec can encode."""
    failure: str = ""
    """The reason for exit status 1; empty for status 0."""
    warning: str = ""
    """What the result leaves out, for standard error; empty if it is complete."""
    redraws: bool = False
    """Whether it takes the place of the answer before it on the screen."""


class SubCommand(NamedTuple):
    """One sub-command.

    `run` raises CommandError, `realtime.Error`, EngineUnavailable, InvalidOptions or InvalidKey.
    """

    name: str
    help: str
    add_arguments: Callable[[CommandParser], None]
    run: Callable[[Options], CommandResult | Iterator[CommandResult]]
    """An iterator: each answer is written when it comes."""
    description: str = ""
    """The text of its `--help`; empty: the same as `help`."""
    goes_on: bool = False
    """Whether it goes on until Ctrl-C, which is then no failure."""


def add_nothing(parser: CommandParser) -> None:
    """Add no arguments."""


def number(
    kind: Callable[[str], N], least: float, most: float, name: str = "number"
) -> Callable[[str], N]:
    """Return what reads a number of an argument. Of its ValueError argparse makes a message.

    Args:
        kind: int or float.
        least: the smallest one.
        most: the largest one.
        name: for the message.
    """

    def read(text: str) -> N:
        value = kind(text)
        if not least <= value <= most:
            raise ValueError
        return value

    read.__name__ = name
    return read


def escape_for_terminal(text: str) -> str:
    """Escape the control characters in a text that may come from clients."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def escape_json_for_terminal(text: str) -> str:
    """Escape in JSON text what JSON allows in strings and terminals obey; its value is the same."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in text
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """Lay rows out in columns; the first row is the heading. Cells are escaped."""
    rows = [tuple(map(escape_for_terminal, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def count(number: int, singular: str) -> str:
    """Return a number with its noun: "1 client", "2 clients"."""
    return f"{number} {singular}" if number == 1 else f"{number} {singular}s"


def cut(text: str, length: int) -> str:
    """Return a text without control characters, cut where it is longer than `length`."""
    text = escape_for_terminal(text[: length + 1])
    return text if len(text) <= length else text[: length - 1] + "…"
