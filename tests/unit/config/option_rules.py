"""Which rules some options break, and what those of a namespace are."""

from __future__ import annotations

from collections.abc import Mapping

from realtime.config.options import ChannelOptions
from realtime.config.reader import load, read


def rules(options: Mapping[str, object] | None = None, **more: object) -> list[str]:
    """The ids of their checks, in the order in which the mistakes are told."""
    return [problem.id for problem in read({**(options or {}), **more})[1]]


def channel_options(given: Mapping[str, object]) -> ChannelOptions:
    """The options of a namespace."""
    return load({"namespaces": [{"name": "chat", **given}]}).namespaces["chat"]
