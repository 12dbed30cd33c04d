"""The simulation itself: seeds that hold, seeds that are equal, known faults that it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.known_faults import KNOWN_FAULTS
from tests.simulation.plan import ENGINES
from tests.simulation.scenario import plan_of, play
from tests.simulation.shrink import shrink

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]

FOUND_BY = {
    "pushes come before the reply": 3,
    "a subscribe during an unsubscribe of the server is undone": 3,
    "gaps are ignored": 20,
    "what comes while history is read is lost": 9,
    "a client recovers in another epoch": 12,
    "a repeated publication is published twice": 16,
    "a reply is taken for that of another command": 21,
}
"""A seed for each fault that is found soon."""


def simulate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [11, 12])
def test_seed_breaks_no_promise(engine: str, seed: int) -> None:
    result = play(plan_of(seed, engine))
    assert result.failures == []
    assert result.deliveries > 0


def test_run_is_equal_with_its_seed() -> None:
    def digest(hash_seed: str) -> str:
        return simulate("--seed", "14", PYTHONHASHSEED=hash_seed).stdout.partition("digest ")[2]

    assert digest("1") == digest("2") != ""


@pytest.mark.parametrize("name", FOUND_BY)
def test_known_fault_is_found(name: str) -> None:
    found = simulate("--fault", name, "--seed", str(FOUND_BY[name]))
    assert found.stdout.startswith(f"found by seed {FOUND_BY[name]} ")
    assert found.returncode == 1


def test_plan_that_fails_becomes_smaller() -> None:
    fault = KNOWN_FAULTS["pushes come before the reply"]
    plan = plan_of(FOUND_BY["pushes come before the reply"], fault.engine)
    with fault.put_back():
        smaller = shrink(plan, seconds=5)
        assert play(smaller).failures != []
    assert len(smaller.faults) < len(plan.faults) or smaller.clients < plan.clients
