"""What a function of `realtime` gave, as JSON can say it."""

from __future__ import annotations

from typing import Any

import msgspec


def of(result: object) -> dict[str, Any]:
    """{"result"}; and {"attributes"} where the result has some besides what it holds."""
    outcome = {"result": msgspec.to_builtins(result)}
    if isinstance(result, list | dict) and (attributes := getattr(result, "__dict__", None)):
        outcome["attributes"] = attributes
    return outcome
