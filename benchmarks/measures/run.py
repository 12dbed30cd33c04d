"""What every measure needs: options, cells, results, and loaders that take turns."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks import machine
from benchmarks.cells import Cell, Setup
from benchmarks.load import Figures, Loader, LoadError
from benchmarks.processes import Process, cpu_seconds, start_all
from benchmarks.results import Results


class Measured(Protocol):
    """What a sample is taken of."""

    @property
    def name(self) -> str: ...

    def cpu_seconds(self) -> float:
        """CPU time used so far, by all that is measured."""
        ...


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
        """Write how far the run is."""
        sys.stderr.write(f"[{time.monotonic() - self.started:5.0f} s] {text}\n")

    def sample(
        self, measure: str, station: Measured, work: Callable[[], Figures]
    ) -> Figures | None:
        """Take one sample; a failure is noted, not raised.

        Kept with it, in cores: `redis_cpu`; `steal`, what the hypervisor took meanwhile; and
        `other`, what processes used that are neither Redis nor this server nor its loader.
        """
        began, before, own = time.monotonic(), machine.usage(), station.cpu_seconds()
        redis = self._redis_seconds()
        try:
            figures = work()
        except LoadError as error:
            self.results.note(f"{measure}, {station.name}: {error}")
            return None
        took, after = time.monotonic() - began, machine.usage()
        redis = self._redis_seconds() - redis
        other = after.busy - before.busy - (station.cpu_seconds() - own) - redis
        sample = figures | {
            "redis_cpu": redis / took,
            "steal": (after.steal - before.steal) / took,
            "other": max(0.0, other / took),
        }
        self.results.add(measure, station.name, sample)
        return sample

    def connected(self, station: Station, number: int) -> bool:
        """Open that many connections; False, with a note, if none became ready."""
        with station.turn() as loader:
            try:
                loader.connect(number)
            except LoadError as error:
                self.results.note(f"{station.name}: left out, {error}")
                return False
        return True

    def _redis_seconds(self) -> float:
        return cpu_seconds(self.setup.redis.pid) if self.setup.redis else 0.0

    @contextlib.contextmanager
    def stations(self, cells: list[Cell]) -> Iterator[list[Station]]:
        """Start the servers of cells; all of them stand still until it is their turn."""
        with contextlib.ExitStack() as stack:
            commands = {name: cell.command for cell in cells for name in cell.servers}
            started = start_all(stack, commands)
            stations = []
            for cell in cells:
                servers = [started[name] for name in cell.servers if name in started]
                if len(servers) < cell.processes:
                    self.results.note(f"{cell.name}: the server did not start")
                    continue
                addresses = [(server.port, server.pid) for server in servers]
                loader = stack.enter_context(Loader(self.loader, addresses, cell.script))
                station = Station(cell, servers, loader)
                station.settle()
                for server in servers:
                    server.pause()
                stations.append(station)
            yield stations


@dataclass
class Station:
    """A cell whose servers, mostly one, were started, with its loader."""

    cell: Cell
    servers: Sequence[Process]
    loader: Loader

    @property
    def name(self) -> str:
        return self.cell.name

    def cpu_seconds(self) -> float:
        """CPU time of servers and loader so far."""
        servers = sum(cpu_seconds(server.pid) for server in self.servers)
        return servers + cpu_seconds(self.loader.pid)

    def settle(self) -> None:
        """Wait until there is nothing to do."""
        for server in self.servers:
            server.settle()

    @contextlib.contextmanager
    def turn(self) -> Iterator[Loader]:
        """Let these servers run for the length of a block; all others stand still."""
        with contextlib.ExitStack() as stack:
            for server in self.servers:
                stack.enter_context(server.going())
            yield self.loader
