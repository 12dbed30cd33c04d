"""Runs: many seeds, divided among several processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from multiprocessing.queues import Queue
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.simulation.scenario import Result


def begin() -> None:
    """Make this process ready to play."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()


class Played(NamedTuple):
    """Which seeds are played."""

    first: int
    seconds: float
    engine: str
    """Where streams live; "": as each seed says."""
    relays: bool | None
    """Whether there are relays; None: as each seed says."""


def results(what: Played, processes: int) -> Iterator[Result]:
    """Play one seed after another for some seconds; yield what came of each.

    Args:
        what: the seeds.
        processes: each plays the next seeds that the others do not.

    Raises:
        RuntimeError: a process ended without a word.
    """
    context = get_context("spawn")
    played: Queue[Result | None] = context.Queue()
    workers = [
        context.Process(target=_play, args=(played, what.first + n, processes, what))
        for n in range(processes)
    ]
    for worker in workers:
        worker.start()
    running = processes
    while running:
        result = played.get()
        if result is None:
            running -= 1
        else:
            yield result
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise RuntimeError(f"a process of the simulation ended with {worker.exitcode}")


def _play(played: Queue[Result | None], first: int, step: int, what: Played) -> None:
    try:
        begin()
        from tests.simulation.scenario import plan_of, play

        until = time.monotonic() + what.seconds
        for seed in count(first, step):
            if time.monotonic() >= until:
                return
            played.put(play(plan_of(seed, what.engine, relays=what.relays)))
    finally:
        played.put(None)
