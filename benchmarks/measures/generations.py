"""Clients of each generation, and of both in a channel: fan-out, memory, what pings cost."""

from __future__ import annotations

from functools import partial
from statistics import mean

from benchmarks.load import Figures, Loader
from benchmarks.measures.run import Run, Station

SERVERS = ("daphne", "uvicorn")
SUBSCRIBERS = 1000
WINDOW = 16
MANY = 10_000
PING_INTERVAL = 25
"""Seconds, the default. The first generation has its clients ping, which these do not do."""
SLICES = 5


def run(run: Run) -> None:
    """All clients at a server of their own, in turn; then as many as there may be."""
    for server in SERVERS:
        with run.stations(run.setup.generations(server)) as stations:
            run.say(f"generations, {server}")
            for station in stations:
                with station.turn() as loader:
                    run.sample("generations memory", station, partial(_connect, station, loader))
            for _ in range(run.rounds):
                for station in stations:
                    with station.turn() as loader:
                        window = partial(loader.closed, WINDOW, run.warm, run.seconds)
                        run.sample("generations w16", station, window)
            for station in stations:
                run.say(f"{MANY} connections, {station.name}")
                with station.turn() as loader:
                    run.sample("generations many", station, partial(_idle, loader))
                    loader.close()


def _connect(station: Station, loader: Loader) -> Figures:
    """Connect the publisher and the subscribers."""
    # the publisher first: what the first connection loads is not every connection's
    loader.publication(SUBSCRIBERS, station.cell.script.publication)
    station.settle()
    figures = loader.connect(SUBSCRIBERS)
    grown = figures["kib"] - figures["kib_before"]
    return figures | {"kib_per_connection": grown / figures["opened"]}


def _idle(loader: Loader) -> Figures:
    """Add connections, and leave them alone for a ping interval."""
    loader.drain(5)
    figures = loader.connect(MANY - SUBSCRIBERS)
    grown = figures["kib"] - figures["kib_before"]
    loader.idle(PING_INTERVAL)  # by then the pings are spread over an interval
    slices = [loader.idle(PING_INTERVAL / SLICES) for _ in range(SLICES)]
    return figures | {
        "kib_per_connection": grown / figures["opened"],
        "idle_cpu": mean(part["cpu"] for part in slices),
        "connections": slices[-1]["connections"],
    }
