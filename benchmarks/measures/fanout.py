"""Fan-out, latency, growth over channels, memory: 1000 subscribers at every server."""

from __future__ import annotations

from functools import partial

from benchmarks.cells import OURS, PLAIN, publish_command, subscribe_command
from benchmarks.load import Figures, Loader, LoadError
from benchmarks.measures.run import Run, Station

SUBSCRIBERS = 1000
WINDOWS = (1, 16, 64)
PLAIN_WINDOW = 16
"""With larger windows the plain consumers are measured once: they are busy for seconds then."""
RATE = 4.0
"""Publications a second for the latency; the plain consumers get one."""
PLAIN_RATE = 1.0
SPREADS = (10, 1000)
"""Channels over which the subscribers are spread; one channel is the fan-out itself."""


def run(run: Run, parts: frozenset[str]) -> None:
    """`parts`: which of fanout, latency, growth, memory."""
    with run.stations(run.setup.fan_out()) as stations:
        run.say(f"{SUBSCRIBERS} subscribers at each of {len(stations)} servers")
        stations = [station for station in stations if _subscribe(run, station)]
        if "fanout" in parts:
            _windows(run, stations, 1)
        if "latency" in parts:
            _latency(run, stations)
        if "fanout" in parts:
            for window in WINDOWS[1:]:
                _windows(run, stations, window)
        if "growth" in parts:
            _spread(run, stations)


def _subscribe(run: Run, station: Station) -> bool:
    """Connect the publisher and the subscribers; the growth of memory is a sample."""
    with station.turn() as loader:

        def connect() -> Figures:
            # the publisher first: what the first connection loads is not every connection's
            loader.publication(SUBSCRIBERS, station.cell.script.publication)
            station.settle()
            figures = loader.connect(SUBSCRIBERS)
            grown = figures["kib"] - figures["kib_before"]
            return figures | {"kib_per_connection": grown / figures["opened"]}

        figures = run.sample("memory", station, connect)
    if figures is None or figures["opened"] < SUBSCRIBERS:
        run.results.note(f"{station.name}: not all subscribers could connect, left out")
        return False
    return True


def _windows(run: Run, stations: list[Station], window: int) -> None:
    run.say(f"fan-out, {window} publications outstanding")
    for number in range(run.rounds):
        for station in stations:
            if number and window > PLAIN_WINDOW and station.name in PLAIN:
                continue
            with station.turn() as loader:
                run.sample(
                    f"fanout w{window}",
                    station,
                    partial(loader.closed, window, run.warm, run.seconds),
                )


def _latency(run: Run, stations: list[Station]) -> None:
    run.say("latency")
    for _ in range(run.rounds):
        for station in stations:
            rate = PLAIN_RATE if station.name in PLAIN else RATE
            seconds = max(run.seconds, 2 / rate)

            def measure(
                loader: Loader = station.loader, rate: float = rate, seconds: float = seconds
            ) -> Figures:
                loader.drain(10)
                return loader.open(rate, run.warm, seconds) | {"rate": rate}

            with station.turn():
                run.sample("latency", station, measure)


def _spread(run: Run, stations: list[Station]) -> None:
    """The same subscribers in many channels, always with a thousand deliveries outstanding."""
    run.say("growth over channels")
    ours = [station for station in stations if station.name in OURS]
    for channels in SPREADS:
        channel = f"s{channels}-%r"
        measure = f"spread {channels}"
        ready = []
        for station in ours:
            with station.turn() as loader:
                try:
                    loader.publication(
                        SUBSCRIBERS / channels, publish_command(channel), modulus=channels
                    )
                    loader.say(subscribe_command(channel), modulus=channels)
                    ready.append(station)
                except LoadError as error:
                    run.results.note(f"{measure}, {station.name}: {error}")
        for _ in range(run.rounds):
            for station in ready:
                with station.turn() as loader:
                    run.sample(
                        measure,
                        station,
                        partial(loader.closed, channels, run.warm, run.seconds),
                    )
