"""Declared types of the channels of a publication: what fits, and examples to start from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from django.utils.translation import gettext as _

from realtime import payload
from realtime.config import sources
from realtime.config.channel_types import TypedPattern

SHOWN = 5
"""Patterns that are described, and misfits that are listed."""


def described(channels: Sequence[str]) -> list[TypedPattern]:
    """Return the declared types of channels, each pattern once."""
    types = sources.current().types
    if types is None:
        return []
    found: dict[str, TypedPattern] = {}
    for channel in channels:
        pattern = types.describe(channel)
        if pattern is not None:
            found.setdefault(pattern.text, pattern)
        if len(found) == SHOWN:
            break
    return list(found.values())


def misfits(channels: Sequence[str], data: str) -> list[str]:
    """Return why data do not have the declared types of channels, as sentences.

    Empty where the option `typed_channels` says that publications of the site are not checked.

    Args:
        channels: names.
        data: JSON text.

    Raises:
        ValueError: the service does not accept the data.
    """
    types = sources.current().types
    if types is None or types.mode() == "off":
        return []
    checked = payload.check(data.encode())
    text = _("Not of the type declared for %(channel)s: %(reason)s.")
    reasons = ((channel, types.mismatch(channel, checked)) for channel in channels)
    found = (text % {"channel": channel, "reason": reason} for channel, reason in reasons if reason)
    return list(islice(found, SHOWN))


def refuses() -> bool:
    """Return whether a publication with misfits is refused, and not only worth a warning."""
    types = sources.current().types
    return types is not None and types.mode() == "raise"
