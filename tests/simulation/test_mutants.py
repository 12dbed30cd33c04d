"""The command that plants faults: it finds one that breaks a promise, and no other one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT, run_python
from tests.simulation.mutations import mutations

pytestmark = pytest.mark.timeout(120)

ORDER = "realtime/streams/order.py"
APPEND = "realtime/engine/redis/lua/append.lua"
QUICK_SEED = "269"


def plant(change: str, steps: int) -> subprocess.CompletedProcess[str]:
    """Run the command for one change of `order.py`, also for one that is known to be equivalent."""
    arguments = [ORDER, "--only", change, "--all", "--measured", "1", "--first", QUICK_SEED]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # as the command has it
    command = ["-m", "tests.simulation.mutants", *arguments, "--steps", str(steps)]
    return run_python(command, ROOT, environment, timeout=120)


def test_fault_is_found_and_the_file_stays_as_it_is() -> None:
    before = (ROOT / ORDER).read_bytes()
    change = "StreamOrder.receive: self.position = position -> pass"
    planted = plant(change, 100_000)
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


def test_blocks_for_maps_belong_to_another_script() -> None:
    names = {mutation.change: mutation.function for mutation in mutations(APPEND)}
    assert names["offset = offset + 1 -> offset = offset - 1"] == "append"
    assert names["lost = true -> lost = false"] == "put"
