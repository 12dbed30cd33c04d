"""The channels of a row: the patterns of a feed, filled in with fields of the row.

    ["order:{pk}", "team:{team_id}:orders"]   →   ["order:42", "team:7:orders"]

A name is used only if the feed's permission decides about it: it must match its pattern, with
the same values. Otherwise a value with a colon, for example, would lead into the channel of another
pattern, which may be open.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import Model

from realtime import channel_rules
from realtime.errors import Error
from realtime.hooks.patterns import Pattern
from realtime.serving import serving

logger = logging.getLogger("realtime.live")

_NAME = re.compile(r"\{(\w+)\}")

Values = Mapping[str, Any]
"""Attribute of a row → its value."""


class ChannelPattern(NamedTuple):
    """One pattern of a feed."""

    text: str
    pattern: Pattern
    fields: Mapping[str, Any]
    """Name in the pattern → field of the row."""

    @property
    def sample(self) -> str:
        """A name of such a channel, to find its options."""
        return _NAME.sub("x", self.text)

    def name(self, values: Values) -> str | None:
        """Return the name of the channel; None if a value is missing, or leads elsewhere."""
        texts: dict[str, str] = {}
        for name, field in self.fields.items():
            text = _text(field, values.get(field.attname))
            if not text:
                return None
            texts[name] = text
        channel = _NAME.sub(lambda found: texts[found[1]], self.text)
        if self.pattern.match(channel) == texts and is_guarded(channel):
            return channel
        logger.error("A row is not published in %r: it is no channel of %r", channel, self.text)
        return None

    def may_be_of_row(self, texts: Mapping[str, str]) -> bool:
        """Return whether a row can have these values, in this spelling: clients chose them."""
        return all(
            "\0" not in text and _text(self.fields[name], text) == text
            for name, text in texts.items()
        )


def _text(field: Any, value: Any) -> str:
    """Return the spelling that the database has of a value; "" for none, or if it has none.

    Code may have set another one, such as the text of a form, or an expression.
    """
    if value is None or hasattr(value, "resolve_expression"):
        return ""
    try:
        return str(field.to_python(value))
    except (ValidationError, ValueError, TypeError, OverflowError, ArithmeticError):
        return ""


def pattern_of(text: str, model: type[Model]) -> ChannelPattern:
    """Return a pattern of a feed.

    Raises:
        TypeError: it is not text.
        ValueError: it is not a pattern, or holds `*`.
        FieldDoesNotExist: a name in it is no field of the model.
    """
    if "*" in text:
        raise ValueError(f"{text!r} names no channel of a row: it has a *")
    pattern = Pattern(text)
    fields: dict[str, Any] = {}
    for name in _NAME.findall(text):
        field: Any = model._meta.pk if name == "pk" else model._meta.get_field(name)
        if not field.concrete or field.many_to_many:
            raise ValueError(f"{text!r}: {name} has no column in the table of {model.__name__}")
        fields[name] = field
    return ChannelPattern(text, pattern, fields)


def is_guarded(channel: str) -> bool:
    """Return whether a name is one of a channel, and subscribe hooks are asked about it."""
    config = serving.config()
    try:
        options = channel_rules.check_channel(channel, config)
    except Error:
        return False
    return not channel_rules.is_user_limited(channel, options, config)


def is_durable(channel: str) -> bool:
    """Return whether publications of a channel are durable; `is_guarded` holds for its name."""
    return channel_rules.options_of(channel, serving.config()).durable


def is_map(channel: str) -> bool:
    """Return whether a channel keeps an entry for each row; `is_guarded` holds for its name."""
    return bool(channel_rules.options_of(channel, serving.config()).map)


def may_be_durable(pattern: ChannelPattern) -> bool:
    """Return whether a channel of a pattern may be durable."""
    try:
        return is_durable(pattern.sample)
    except Error:  # a field of the row names the namespace
        return True


def names(patterns: Iterable[ChannelPattern], values: Values) -> set[str]:
    """Return the channels of a row with these values."""
    return {name for each in patterns if (name := each.name(values)) is not None}


def values(attributes: Iterable[str], instance: Model) -> dict[str, Any]:
    """Return the values of a row that are loaded; nothing is read for the others."""
    loaded = instance.__dict__
    return {name: loaded[name] for name in attributes if name in loaded}
