"""What single connections cost: connecting, commands, and the server API over HTTP."""

from __future__ import annotations

from functools import partial

from benchmarks.cells import API_PUBLISH, ECHO, OURS, PING
from benchmarks.load import Figures, Loader
from benchmarks.measures.run import Run, Station

CONNECTIONS = 500
"""Connections that are opened in one round."""
TALKERS = 100
"""Connections that send commands."""
API_CLIENTS = 32
BATCH = 100
"""Publications of one pipelined request."""


def run(run: Run, parts: frozenset[str]) -> None:
    """`parts`: which of connections, commands, http."""
    if parts & {"connections", "commands"}:
        with run.stations(run.setup.commands()) as stations:
            if "connections" in parts:
                _connections(run, stations)
            if "commands" in parts:
                _commands(run, stations)
    if "http" in parts:
        with run.stations(run.setup.api()) as stations:
            _http(run, stations)


def _connections(run: Run, stations: list[Station]) -> None:
    run.say("connections per second")
    # the first connections load what later ones need
    stations = [station for station in stations if run.connected(station, TALKERS)]
    for station in stations:
        with station.turn() as loader:
            loader.close()
            station.settle()
    for _ in range(run.rounds):
        for station in stations:
            with station.turn() as loader:
                run.sample(
                    "connections",
                    station,
                    partial(loader.connect, CONNECTIONS),
                )
                loader.close()
                station.settle()


def _commands(run: Run, stations: list[Station]) -> None:
    run.say("commands per second")
    stations = [station for station in stations if run.connected(station, TALKERS)]
    for _ in range(run.rounds):
        for station in stations:
            text = PING if station.name in OURS else ECHO
            with station.turn() as loader:
                run.sample(
                    "commands",
                    station,
                    partial(loader.echo, text, run.warm, run.seconds),
                )


def _http(run: Run, stations: list[Station]) -> None:
    run.say("publications over HTTP")
    stations = [station for station in stations if run.connected(station, API_CLIENTS)]
    for batch in (1, BATCH):
        for _ in range(run.rounds):
            for station in stations:

                def measure(loader: Loader = station.loader, batch: int = batch) -> Figures:
                    figures = loader.echo(API_PUBLISH, run.warm, run.seconds, repeat=batch)
                    return figures | {
                        "publications_per_s": figures["replies_per_s"] * batch,
                        "cpu_us_per_publication": figures["cpu_us_per_reply"] / batch,
                    }

                with station.turn():
                    run.sample(f"http x{batch}", station, measure)
