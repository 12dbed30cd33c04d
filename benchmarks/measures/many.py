"""Growth over subscribers in one channel, up to 10 000 connections in one process."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import mean

from benchmarks.cells import publish_command
from benchmarks.load import Figures, Loader
from benchmarks.measures.run import Run, Station

STEPS = (100, 1000, 5000, 10_000)
PING_INTERVAL = 20
"""Seconds, the default of both servers. Idle servers are watched for one of them."""
SLICES = 5


def run(run: Run, parts: frozenset[str]) -> None:
    """`parts`: which of growth, memory."""
    steps = STEPS if "growth" in parts else STEPS[-1:]
    with run.stations(run.setup.many(PING_INTERVAL)) as stations:
        grown: list[tuple[Station, Figures]] = []
        for station in stations:
            run.say(f"{steps[-1]} connections, {station.name}")
            with station.turn() as loader:
                figures = _grow(run, station, loader, steps)
            if figures is not None:
                grown.append((station, figures))
        if "memory" in parts:
            _idle(run, grown)


def _grow(run: Run, station: Station, loader: Loader, steps: tuple[int, ...]) -> Figures | None:
    """Connect step by step; returns what all connections together cost."""
    loader.publication(1, station.cell.script.publication)
    station.settle()
    total: Figures = {}
    opened = failed = 0.0
    for step in steps:
        connect = partial(loader.connect, step - int(opened + failed))
        figures = run.sample(f"connect to {step}", station, connect)
        if figures is None:
            return None
        opened += figures["opened"]
        failed += figures["failed"]
        total.setdefault("kib_before", figures["kib_before"])
        total["kib_per_connection"] = (figures["kib"] - total["kib_before"]) / opened
        total["failed"] = failed
        if steps == STEPS:
            loader.publication(opened, publish_command("g"))
            for _ in range(min(run.rounds, 2)):
                window = partial(loader.closed, 1, run.warm, run.seconds)
                run.sample(f"growth {step}", station, window)
    loader.drain(5)
    return total


def _idle(run: Run, grown: list[tuple[Station, Figures]]) -> None:
    """Leave all servers alone at the same time: they hardly do anything."""
    run.say(f"{PING_INTERVAL} s with idle connections")

    def idle(station: Station, figures: Figures) -> Figures:
        slices = [station.loader.idle(PING_INTERVAL / SLICES) for _ in range(SLICES)]
        cpu = [part["cpu"] for part in slices]
        return figures | {
            "idle_cpu": mean(cpu),
            "least_idle_cpu": min(cpu),  # no ping is due
            "connections": slices[-1]["connections"],
        }

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(grown) or 1) as threads:
        for station, _ in grown:
            stack.enter_context(station.turn())
            station.loader.idle(1)
        futures = [
            threads.submit(run.sample, "many", station, partial(idle, station, figures))
            for station, figures in grown
        ]
        for future in futures:
            future.result()
