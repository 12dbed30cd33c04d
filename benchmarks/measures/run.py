"""What every measure needs: options, cells, results, and loaders that take turns."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import machine
from benchmarks.cells import Cell, Setup
from benchmarks.load import Figures, Loader, LoadError
from benchmarks.processes import Process, cpu_seconds, start_all
from benchmarks.results import Results


@dataclass
class Run:
    """One run of the suite."""

    setup: Setup
    loader: Path
    """The compiled load generator."""
    rounds: int
    seconds: float
    """Length of a measured window."""
    results: Results = field(default_factory=Results)
    started: float = field(default_factory=time.monotonic)

    @property
    def warm(self) -> float:
        """Seconds of load before a window is measured."""
        return min(0.25, self.seconds / 4)

    def say(self, text: str) -> None:
        """Tell whoever watches how far we are."""
        sys.stderr.write(f"[{time.monotonic() - self.started:5.0f} s] {text}\n")

    def sample(self, measure: str, station: Station, work: Callable[[], Figures]) -> Figures | None:
        """Take one sample; a failure is noted, not raised.

        Kept with it, in cores: `steal`, what the hypervisor took meanwhile, and `other`, what
        processes used that are neither this server nor its loader.
        """
        began, before, own = time.monotonic(), machine.usage(), station.cpu_seconds()
        try:
            figures = work()
        except LoadError as error:
            self.results.note(f"{measure}, {station.name}: {error}")
            return None
        took, after = time.monotonic() - began, machine.usage()
        other = after.busy - before.busy - (station.cpu_seconds() - own)
        sample = figures | {
            "steal": (after.steal - before.steal) / took,
            "other": max(0.0, other / took),
        }
        self.results.add(measure, station.name, sample)
        return sample

    @contextlib.contextmanager
    def stations(self, cells: list[Cell]) -> Iterator[list[Station]]:
        """Start the servers of cells; all of them stand still until it is their turn."""
        with contextlib.ExitStack() as stack:
            started = start_all(stack, {cell.name: cell.command for cell in cells})
            stations = []
            for cell in cells:
                if cell.name not in started:
                    self.results.note(f"{cell.name}: the server did not start")
                    continue
                server = started[cell.name]
                loader = Loader(self.loader, server.port, server.pid, cell.script)
                stack.enter_context(loader)
                server.settle()
                server.pause()
                stations.append(Station(cell, server, loader))
            yield stations


@dataclass
class Station:
    """A server that was started, with its loader."""

    cell: Cell
    server: Process
    loader: Loader

    @property
    def name(self) -> str:
        return self.cell.name

    def cpu_seconds(self) -> float:
        """CPU time of server and loader so far."""
        return cpu_seconds(self.server.pid) + cpu_seconds(self.loader.pid)

    @contextlib.contextmanager
    def turn(self) -> Iterator[Loader]:
        """Let this server run for the length of a block; all others stand still."""
        with self.server.going():
            yield self.loader
