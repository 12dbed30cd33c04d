"""Which rules some options break."""

from __future__ import annotations

from collections.abc import Mapping

from realtime.config.reader import read


def rules(options: Mapping[str, object] | None = None, **more: object) -> list[str]:
    """The ids of their checks, in the order in which the mistakes are told."""
    return [problem.id for problem in read({**(options or {}), **more})[1]]
