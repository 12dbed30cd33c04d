"""Read options: a plain mapping of names and values becomes a `Config`.

Pure: `sources` has merged environment, settings and file already. Every problem is reported,
not the first one only; the system checks show them one by one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field
from difflib import get_close_matches
from typing import Any

from realtime.config import rules
from realtime.config.fields import KIND_WORDS, kind_of, may_be_emptied
from realtime.config.names import given_namespaces, options_in
from realtime.config.nested_names import (
    CHANNEL_UNSUPPORTED,
    CHANNEL_UNUSED,
    FLAT_UNSUPPORTED,
    OFF,
    why_unused,
)
from realtime.config.options import (
    CHANNEL_OPTION_FIELDS,
    CONFIG_FIELDS,
    ChannelOptions,
    Config,
    config_of,
    find_option,
)
from realtime.config.problems import Problem
from realtime.payload import is_text

NAMESPACE_NAME = re.compile(r"[-a-zA-Z0-9_]{2,}")
MAXIMUM = 2**53
"""The largest value of any number. As seconds it still fits into Redis' integers when counted in
milliseconds, and Lua, whose numbers are floating point, is exact up to here."""


class InvalidOptions(ValueError):
    """The options cannot be used. `problems` lists every mistake in them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


def load(options: Mapping[str, object]) -> Config:
    """Return the `Config` of option names and values.

    Raises:
        InvalidOptions: any of them is wrong; it lists every problem.
    """
    config, problems = read(options)
    if problems:
        raise InvalidOptions(problems)
    return config


def read(options: Mapping[str, object]) -> tuple[Config, list[Problem]]:
    """Return a `Config` of the options that can be used, and the problems of the others."""
    reader = _Reader()
    return reader.read(options), reader.problems


class _Reader:
    """Reads options, and collects the mistakes in them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def _wrong(self, check: str, message: str, hint: str) -> None:
        self.problems.append(Problem(check, message, hint))

    def read(self, options: Mapping[str, object]) -> Config:
        values: dict[str, Any] = {}
        channel_values: dict[str, Any] = {}
        for known, name, value in options_in(options):
            if name == "namespaces":
                continue
            if option := CHANNEL_OPTION_FIELDS.get(known):
                self._read_value(option, name, value, channel_values)
            elif option := CONFIG_FIELDS.get(known):
                self._read_value(option, name, value, values, known)
            else:
                hint = _did_you_mean(name, ("namespaces", *CONFIG_FIELDS, *CHANNEL_OPTION_FIELDS))
                reason = FLAT_UNSUPPORTED.get(name, "")
                self._not_an_option(name, value, "", reason, why_unused(name), hint)
        channel = ChannelOptions(**channel_values)
        self.problems.extend(rules.of_channels.problems("the top level", channel))
        namespaces = self._read_namespaces(options.get("namespaces"))
        config = config_of(values, channel=channel, namespaces=namespaces)
        self.problems.extend(rules.check(config))
        return config

    def _read_value(
        self, option: Field[Any], label: str, value: object, into: dict[str, Any], known: str = ""
    ) -> None:
        """Put the value of an option into `into`, if it has no mistake.

        Args:
            option: the option.
            label: the name that messages give it.
            value: as it was given.
            into: gets values by name.
            known: the name in `into`; empty: the name of the field.
        """
        kind = kind_of(option)
        meaning = str(option.metadata["meaning"])
        if convert := option.metadata["convert"]:
            value = convert(value)
        if not _is_of_kind(kind, value):
            # the value itself stays out of the message: it may be a secret
            must_be = f"{KIND_WORDS[kind]}, not {type(value).__name__}"
            self._wrong("E003", f"Option {label!r} must be {must_be}.", meaning)
        elif kind in ("str", "bool | str", "list") and not all(map(is_text, _strings(value))):
            self._wrong("E003", f"Option {label!r} must be text in UTF-8.", meaning)
        elif bound := _broken_bound(option, value):
            self._wrong("E004", f"Option {label!r} must be {bound}.", meaning)
        else:
            into[known or option.name] = tuple(value) if isinstance(value, list) else value

    def _read_namespaces(self, value: object) -> dict[str, ChannelOptions]:
        namespaces: dict[str, ChannelOptions] = {}
        try:
            value = given_namespaces(value)
        except ValueError:
            self._wrong("E003", "Option 'namespaces' is not JSON.", "Write a JSON array.")
            return namespaces
        if value is None:
            return namespaces
        if not isinstance(value, list | tuple) or not all(isinstance(i, Mapping) for i in value):
            self._wrong(
                "E003",
                "Option 'namespaces' must be a list of objects.",
                'For example [{"name": "chat", "presence": True}].',
            )
            return namespaces
        for item in value:
            name = item.get("name")
            if not isinstance(name, str) or not NAMESPACE_NAME.fullmatch(name):
                self._wrong(
                    "E005",
                    f"Namespace name {name!r} is not allowed.",
                    "Use at least two letters, digits, hyphens or underscores.",
                )
            elif name in namespaces:
                text = f"Namespace {name!r} is configured twice."
                self._wrong("E006", text, "Namespace names are unique.")
            else:
                namespaces[name] = self._read_namespace(name, item)
        return namespaces

    def _read_namespace(self, name: str, item: Mapping[str, object]) -> ChannelOptions:
        values: dict[str, Any] = {}
        for known, key, value in options_in(item):
            if option := CHANNEL_OPTION_FIELDS.get(known):
                self._read_value(option, f"{key} of namespace {name}", value, values)
            elif key != "name":
                hint = (
                    _did_you_mean(key, CHANNEL_OPTION_FIELDS)
                    + f" A namespace takes a name and {', '.join(CHANNEL_OPTION_FIELDS)}."
                )
                reason, unused = CHANNEL_UNSUPPORTED.get(key, ""), CHANNEL_UNUSED.get(key, "")
                self._not_an_option(key, value, f" in namespace {name!r}", reason, unused, hint)
        options = ChannelOptions(**values)
        self.problems.extend(rules.of_channels.problems(f"namespace {name!r}", options))
        return options

    def _not_an_option(
        self, name: str, value: object, place: str, reason: str, unused: str, hint: str
    ) -> None:
        """Report an option that this service does not have, if that is a mistake.

        Args:
            name: its name.
            value: its value.
            place: the namespace where it is; "" at the top level.
            reason: why it is not supported; "" if that is not known.
            unused: why it has no effect, which is no mistake; "" if that is not known.
            hint: for a name that is unknown.
        """
        if reason:
            if value not in OFF and value not in ("false", "0"):
                message = f"Option {name!r}{place} is not supported: {reason}."
                self._wrong("E043", message, "Turn it off, or remove it.")
        elif not unused:
            self._wrong("E002", f"Unknown option {name!r}{place}.", hint)


def from_strings(strings: Mapping[str, str]) -> dict[str, object]:
    """Return option values from the environment with the types of their options.

    Booleans are true/false/1/0, lists are separated by spaces, `namespaces` is a JSON array,
    an empty string means "not set". `none` is an empty text or list, where that is another value
    than the default. A value that does not fit stays a string, which `read` reports.
    """
    values: dict[str, object] = {}
    for name, text in strings.items():
        option = find_option(name)
        if text.strip():
            values[name] = text if option is None else _from_string(option, text)
    return values


def _from_string(option: Field[Any], text: str) -> object:
    kind = kind_of(option)
    if text.strip().lower() == "none" and may_be_emptied(option):
        return [] if kind == "list" else ""
    match kind:
        case "bool" | "bool | str":
            return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
        case "int":
            return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text
        case "float":
            return float(text) if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", text) else text
        case "list":
            return text.split()
        case _:
            return text


def _is_of_kind(kind: str, value: object) -> bool:
    match value:
        case bool():
            return kind in ("bool", "bool | str")
        case int():
            return kind in ("int", "float")
        case float():
            return kind == "float" and math.isfinite(value)
        case str():
            return kind in ("str", "bool | str")
        case list() | tuple():
            return kind == "list" and all(isinstance(item, str) for item in value)
        case _:
            return False


def _strings(value: Any) -> Sequence[str]:
    return value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else []


def _broken_bound(option: Field[Any], value: object) -> str | None:
    """Return the bound that a number breaks, or the choices that a word is none of, in words."""
    if isinstance(value, bool):
        return None
    if choices := option.metadata["choices"]:
        known = all(each in choices for each in _strings(value))
        return None if known else f"one of {', '.join(filter(None, choices))}"
    if not isinstance(value, int | float):
        return None
    least: float = option.metadata["least"]
    if value < least:
        return f"at least {least}"
    return f"at most {MAXIMUM}" if value > MAXIMUM else None


def _did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint for the name of an option that is unknown."""
    similar = get_close_matches(str(name).lower(), known, n=1)
    return f"Did you mean {similar[0]}?" if similar else "Names are in lower case, as publish."
