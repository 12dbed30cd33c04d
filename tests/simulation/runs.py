"""Runs: many seeds, each in one of several processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.scenario import Result

SEEDS_OF_A_PROCESS = 200
"""Seeds that a process plays before a new one takes its place."""


def begin() -> None:
    """Make this process ready to play."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()


def results(first: int, seconds: float, engine: str, processes: int) -> Iterator[Result]:
    """Play one seed after another for some seconds; yield what came of each.

    Args:
        first: the first seed.
        engine: where streams live; "": as each seed says.
    """
    until = time.monotonic() + seconds
    seed = first
    with ProcessPoolExecutor(
        processes,
        get_context("spawn"),
        initializer=begin,
        max_tasks_per_child=SEEDS_OF_A_PROCESS,
    ) as pool:
        running: set[Future[Result]] = set()
        while True:
            while time.monotonic() < until and len(running) < 2 * processes:
                running.add(pool.submit(_play, seed, engine))
                seed += 1
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _play(seed: int, engine: str) -> Result:
    from tests.simulation.scenario import plan_of, play

    return play(plan_of(seed, engine))
