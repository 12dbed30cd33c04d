"""Shrink: make a plan that fails smaller as long as it fails: fewer faults, fewer of all else."""

from __future__ import annotations

import time

from tests.simulation.plan import Plan
from tests.simulation.scenario import play


def shrink(plan: Plan, seconds: float) -> Plan:
    """Return a smaller plan that fails, too, after about so many seconds."""
    until = time.monotonic() + seconds
    is_smaller = True
    while is_smaller and time.monotonic() < until:
        is_smaller = False
        for candidate in plan.smaller():
            if time.monotonic() >= until:
                return plan
            if _fails(candidate):
                plan, is_smaller = candidate, True
        step = max(1, len(plan.faults) // 2)
        while step and time.monotonic() < until:
            first = 0
            while first < len(plan.faults) and time.monotonic() < until:
                candidate = plan.without(first, first + step)
                if _fails(candidate):
                    plan, is_smaller = candidate, True
                else:
                    first += step
            step //= 2
    return plan


def _fails(plan: Plan) -> bool:
    return bool(play(plan).failures)
