"""Fields of options: a default, a meaning, and what a value may be.

The values of options come from JSON, from Python and, as text, from the environment. `convert`
turns other spellings into the usual one, before the type is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import Field, field
from typing import Any

KIND_WORDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool | str": "true, false or a word",
    "list": "a list of strings",
}
"""The kinds of option values, in words."""

_SECONDS_IN = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)"
_DURATION = re.compile(rf"-?(?:{_PART})+")


def option(
    default: Any,
    meaning: str,
    *,
    secret: bool = False,
    least: float = 0,
    choices: Sequence[str] = (),
    convert: Callable[[object], object] | None = None,
) -> Any:
    """Return the field of an option.

    Args:
        default: its value when it is not set; None if that follows from other options.
        meaning: a sentence for the documentation and for hints.
        secret: keep the value out of the config's repr.
        least: for a number, its least value.
        choices: for a string or the strings of a list, the only values; empty: any. An option
            that is a switch or a string may also be true or false.
        convert: turns other spellings of a value into the usual one, before its type is
            checked; returns everything else as it is.
    """
    metadata = {"meaning": meaning, "least": least, "choices": choices, "convert": convert}
    return field(default=default, repr=not secret, metadata=metadata)


def seconds(default: float | None, meaning: str, *, least: float = 0) -> Any:
    """Return the field of an option that is a time in seconds, or text such as "5m30s"."""
    return option(default, meaning, least=least, convert=as_seconds)


def kind_of(field_of_option: Field[Any]) -> str:
    """Return the kind of an option's value: a key of `KIND_WORDS`."""
    annotation = str(field_of_option.type)
    return annotation if annotation in KIND_WORDS else "list"


def may_be_emptied(field_of_option: Field[Any]) -> bool:
    """Return whether an empty text or list is another value of an option than its default."""
    kind, is_word = kind_of(field_of_option), bool(field_of_option.metadata["choices"])
    return kind == "list" or (kind == "str" and bool(field_of_option.default) and not is_word)


def as_seconds(value: object) -> object:
    """Return a duration with units, such as "720h" or "1m30s", in seconds.

    It is an integer if the seconds are whole. Everything else is returned as it is.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text == "0":
        return 0
    if _DURATION.fullmatch(text) is None:
        return value
    total = float(sum(float(count) * _SECONDS_IN[unit] for count, unit in re.findall(_PART, text)))
    total = -total if text.startswith("-") else total
    return int(total) if total.is_integer() else total


def as_text(value: object) -> object:
    """Write a number as text, as a config file of the reference server may have it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_comma_list(value: object) -> object:
    """Join a list of strings, as a config file of the reference server may have it."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return value
