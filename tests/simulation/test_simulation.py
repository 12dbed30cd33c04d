"""The simulation itself: seeds that hold, seeds that are equal, known faults that it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from tests.processes import ROOT, run_python
from tests.simulation.known_faults import KNOWN_FAULTS
from tests.simulation.plan import ENGINES, POSTGRESQL
from tests.simulation.scenario import plan_of

TIMEOUT = 300.0
pytestmark = pytest.mark.timeout(TIMEOUT)

FOUND_BY = {
    "pushes come before the reply": 4,
    "a subscribe during an unsubscribe of the server is undone": 13,
    "gaps are ignored": 7,
    "publications during a read of history are lost": 21,
    "a client recovers in another epoch": 26,
    "a repeated publication is published twice": 1,
    "a reply is taken for that of another command": 20,
    "a row is deleted before it is published": 1,
    "a row has no key of its own": 1,
    "rows overtake one that Redis refuses": 29,
    "a client that reads nothing is never closed": 4,
    "an unsubscribe is acknowledged before it is done": 136,
    "frames are relayed to their session twice": 3,
    "a session has two owners": 4,
    "frames of a session change places": 4,
    "a statement without a reply is sent again": 3,
    "a key is not in the transaction of its publication": 4,
    "a key is used before its ring": 22,
    "a promotion keeps the epochs": 54,
    "a row is published apart without a key": 46,
    "a map has the position of its last page": 35,
}
"""Where to begin to look for the faults that are found soon: one of the next seeds finds it."""
JOINED = ("--engine", POSTGRESQL, "--relays")


@cache
def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command, in a process begun by a fork; once with the same arguments."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # as the command has it
    return run_python(["-m", "tests.simulation", *arguments], ROOT, environment, timeout=TIMEOUT)


@pytest.mark.parametrize("engine", [*ENGINES, POSTGRESQL])
@pytest.mark.parametrize("seed", [26, 35])
def test_seed_breaks_no_promise(engine: str, seed: int) -> None:
    played = simulate("--seed", str(seed), "--engine", engine)
    assert "FAILED" not in played.stdout
    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize("seed", ["4", "12", "15"])
def test_rows_in_the_database_of_the_engine_break_no_promise(seed: str) -> None:
    assert plan_of(int(seed), POSTGRESQL, relays=True).is_joined
    played = simulate("--seed", seed, *JOINED)
    assert "FAILED" not in played.stdout
    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize("seed", [1, 4])
def test_relays_break_no_promise(seed: int) -> None:
    played = simulate("--seed", str(seed), "--relays")
    assert "FAILED" not in played.stdout
    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize(
    "seed",
    [
        ("26", "--engine", "sentinel"),
        ("4", "--relays"),
        ("12", *JOINED),
        ("35", "--engine", POSTGRESQL),
    ],
)
def test_run_is_equal_with_its_seed(seed: tuple[str, ...]) -> None:
    elsewhere = subprocess.run(  # where hashes, addresses and imports are others
        [sys.executable, "-m", "tests.simulation", "--seed", *seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    digest = simulate("--seed", *seed).stdout.partition("digest ")[2]
    assert digest == elsewhere.stdout.partition("digest ")[2] != ""


@pytest.mark.parametrize("name", FOUND_BY)
def test_known_fault_is_found(name: str) -> None:
    found = simulate("--fault", name, "--first", str(FOUND_BY[name]), "--seconds", "200")
    assert found.stdout.startswith("found by seed ")
    assert found.returncode == 1


def test_plan_that_fails_becomes_smaller() -> None:
    name = "an unsubscribe is acknowledged before it is done"
    found = simulate("--fault", name, "--first", str(FOUND_BY[name]), "--smaller", "1")
    seed = int(found.stdout.split()[3].rstrip(":"))
    plan = plan_of(seed, KNOWN_FAULTS[name].engine)
    smaller = found.stdout.partition("made smaller: ")[2].strip()
    assert smaller.startswith("Plan("), found.stderr
    assert smaller != str(plan)
