"""The command that plants faults: it finds one that breaks a promise, and no other one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).parents[2]
ORDER = "realtime/streams/order.py"
QUICK_SEED = "4"


def plant(change: str, steps: int) -> subprocess.CompletedProcess[str]:
    """Run the command for one change of `order.py`, also for one that is known to be equivalent."""
    arguments = [ORDER, "--only", change, "--all", "--measured", "1", "--first", QUICK_SEED]
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation.mutants", *arguments, "--steps", str(steps)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_fault_is_found_and_the_file_stays_as_it_is() -> None:
    before = (ROOT / ORDER).read_bytes()
    change = "StreamOrder._take_due: offset += 1 -> offset += 2"
    planted = plant(change, 10_000_000)
    assert planted.stdout.startswith(f"found    {ORDER}:"), planted
    assert f"{change} | seed " in planted.stdout
    assert "1 of 1 found, 100.0 %; 0 excluded as equivalent" in planted.stdout
    assert planted.returncode == 0
    assert (ROOT / ORDER).read_bytes() == before


def test_equivalent_mutation_survives() -> None:
    planted = plant("self._suspected = 0 -> self._suspected = 1", 1)
    assert planted.stdout.startswith(f"survived {ORDER}:"), planted
    assert "0 of 1 found" in planted.stdout
    assert planted.returncode == 1


def test_lines_are_noted_as_they_are_executed() -> None:
    code = (
        "from collections import Counter\n"
        "from tests.simulation.mutations import note_lines\n"
        "executed = Counter()\n"
        f"note_lines(['{ORDER}'], executed)\n"
        "from realtime.streams.order import StreamOrder\n"
        "StreamOrder().suspect_loss()\n"
        "print(*sorted(line for _, line in executed))\n"
    )
    noted = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = (ROOT / ORDER).read_text(encoding="utf-8").splitlines()
    executed = {lines[int(number) - 1].strip() for number in noted.stdout.split()}
    assert {"self._suspected += 1", 'self._uid = ""'} <= executed
    assert "self._early.clear()" not in executed
