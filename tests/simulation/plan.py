"""Plan: what a seed decides before anything happens, so that a plan can be made smaller.

Each fault has chances of its own: without one of them, the others are what they were.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MEMORY, ONE, SHARDS, SENTINEL, CONFIRMED = "memory", "one", "shards", "sentinel", "confirmed"
"""Where streams live: in the process; in one Redis; in two; in a Redis with a replica and
Sentinels, without and with waiting for the replica."""

ENGINES: Mapping[str, int] = {MEMORY: 1, ONE: 4, SHARDS: 2, SENTINEL: 3, CONFIRMED: 1}
"""How often each is played."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """Something that goes wrong."""

    at: float
    """Seconds from the beginning."""
    name: str
    seed: int
    """Of its chances."""


@dataclass(frozen=True, slots=True)
class Plan:
    """See the module."""

    seed: int
    engine: str
    nodes: int
    clients: int
    listeners: int
    threads: int
    """Processes that publish without an event loop."""
    channels: int
    history_size: int
    epoch_per_run: bool
    """Whether the option is on, without which a Redis must lose nothing, or everything."""
    position_checks: bool
    """Whether nodes compare positions with the engine's, which mends what else went wrong."""
    rate: float
    """Publications a second, on average."""
    length: float
    """Seconds with load and faults."""
    faults: Sequence[PlannedFault]

    @classmethod
    def of(cls, seed: int, kinds: Mapping[str, int], engine: str = "") -> Plan:
        """Return the plan of a seed.

        Args:
            kinds: what may go wrong, and how often.
            engine: one of `ENGINES`; "": the seed decides.
        """
        chance = random.Random(seed)
        drawn = chance.choices(list(ENGINES), list(ENGINES.values()))[0]
        engine = engine or drawn
        clients = chance.choice((2, 8, 60, 150))
        length = 30.0
        faults = []
        at, pause = 3.0, chance.choice((0.02, 0.04, 0.1, 0.3, 3.0))
        # where everything goes wrong at once, one fault hides what another one does
        number = chance.choice((1, 2, 4, len(kinds)))
        names = chance.sample(list(kinds), number)
        weights = [kinds[name] for name in names]
        while (at := at + chance.expovariate(1 / pause)) < length:
            name = chance.choices(names, weights)[0]
            faults.append(PlannedFault(at, name, chance.getrandbits(32)))
        return cls(
            seed,
            engine,
            1 if engine == MEMORY else chance.randint(1, 4),
            clients,
            chance.choice((0, 1, 10)),
            0 if engine == MEMORY else chance.choice((0, 1, 2)),
            chance.randint(1, 4),
            chance.choice((5, 40, 300)),
            engine in (SENTINEL, CONFIRMED) or chance.random() < 0.5,
            chance.random() < 0.6,
            chance.choice((2.0, 10.0, 30.0)),
            length,
            tuple(faults),
        )

    def without(self, first: int, last: int) -> Plan:
        """Return the plan without some of its faults, by their places."""
        return dataclasses.replace(self, faults=(*self.faults[:first], *self.faults[last:]))

    def smaller(self) -> list[Plan]:
        """Return plans with less of one thing."""
        smaller = []
        for name in ("clients", "listeners", "nodes", "threads", "channels"):
            number = getattr(self, name)
            least = 0 if name in ("threads", "listeners") else 1
            if number > least:
                smaller.append(dataclasses.replace(self, **{name: max(least, number // 2)}))
        if self.faults:
            until = max(fault.at for fault in self.faults) + 2
            if until < self.length - 1:
                smaller.append(dataclasses.replace(self, length=until))
        return smaller
