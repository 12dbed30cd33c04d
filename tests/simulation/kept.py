"""Kept plans: each broke a promise once, and is played again before new seeds.

A plan decides the same chances only as long as the service does the same steps: what it found once
is held by a test of its own as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.simulation.plan import Plan

KEPT = Path(__file__).parent / "kept"


def keep(name: str, plan: Plan) -> None:
    """Keep a plan.

    Args:
        name: what went wrong, in a few words.
    """
    KEPT.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(plan), indent=1)
    (KEPT / f"{name.replace(' ', '_')}.json").write_bytes(text + b"\n")


def kept_plans() -> Iterator[tuple[str, Plan]]:
    """Yield the name of each kept plan, and the plan."""
    for path in sorted(KEPT.glob("*.json")):
        yield path.stem.replace("_", " "), msgspec.json.decode(path.read_bytes(), type=Plan)
