"""Plan: what a seed decides before anything happens, so that a plan can be made smaller.

Each fault has chances of its own: without one of them, the others are what they were.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

MEMORY, ONE, SHARDS, SENTINEL, CONFIRMED = "memory", "one", "shards", "sentinel", "confirmed"
CLUSTER = "cluster"
POSTGRESQL = "postgresql"
"""Where streams live: in the process; in one Redis; in two; in a Redis with a replica and
Sentinels, without and with waiting for the replica; in a Redis Cluster; in PostgreSQL."""

ENGINES: Mapping[str, int] = {
    MEMORY: 1,
    ONE: 4,
    SHARDS: 2,
    SENTINEL: 3,
    CONFIRMED: 1,
    CLUSTER: 2,
}
"""How often each is played, besides PostgreSQL."""
OVER_POSTGRESQL = 0.3
"""The share of plans with PostgreSQL."""

SMALL_QUEUE = 10_000
"""Bytes for which clients are slow; twice as many are recovered at most."""

RELAYED = 0.15
"""The share of plans with relays."""
JOINED = 0.5
"""The share of those with both in PostgreSQL that have rows and streams in the same one."""
ADDED = 0.3
"""The share of plans with a fault that is drawn apart from others."""
RARE = 7
"""One plan in so many has positions that expire, and a channel in which some clients recover."""
MAPPED = 5
"""One plan of this number has maps."""
META_LIFETIME = 3600
DATABASES = ("postgresql", "postgresql", "sqlite")


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
    over_http: float
    """Share of the clients that use streams and SockJS over HTTP."""
    queue_size: int
    """Unsent bytes after which a client is slow."""
    response_size: int
    """Bytes after which a streaming response of SockJS ends."""
    rate: float
    """Publications a second, on average."""
    length: float
    """Seconds with load and faults."""
    faults: Sequence[PlannedFault]
    waits: bool
    """Whether publishers wait for a replica."""
    writers: int = 0
    """Processes of the site that write durable publications; without one there are no relays."""
    database: str = ""
    """The kind of the site's database; see `site_database`."""
    polls: bool = False
    """Whether nodes poll PostgreSQL, and do not listen."""
    loses_commits: bool = False
    """Whether the replica of PostgreSQL may lack the last commits."""
    meta_lifetime: int = 0
    """Seconds that Redis keeps the position of an unused stream; 0: forever."""
    is_mixed: bool = False
    """Whether some clients of a channel recover, and others do not."""
    is_joined: bool = False
    """Whether durable rows are in the PostgreSQL of the streams."""
    has_maps: bool = False
    """Whether there are maps, with a load of their own."""

    @classmethod
    def of(
        cls,
        seed: int,
        kinds_of: Callable[[str], Mapping[str, int]],
        slow: Collection[str],
        of_relays: Mapping[str, int],
        engine: str = "",
        *,
        relays: bool | None = None,
    ) -> Plan:
        """Return the plan of a seed.

        Args:
            kinds_of: returns what may go wrong with an engine, and how often.
            slow: the kinds of slow readers, which some plans have alone.
            of_relays: what may go wrong besides, where there are relays.
            relays: whether there are relays; None: the seed decides.
            engine: one of `ENGINES`; "": the seed decides.
        """
        chance = random.Random(seed)
        drawn = chance.choices(list(ENGINES), list(ENGINES.values()))[0]
        elsewhere = random.Random(f"{seed} postgresql")  # so that other plans stay as they are
        over_postgresql, polls = elsewhere.random() < OVER_POSTGRESQL, elsewhere.random() < 0.25
        engine = engine or (POSTGRESQL if over_postgresql else drawn)
        kinds = kinds_of(engine)
        clients = chance.choice((2, 8, 60, 150))
        apart = random.Random(f"{seed} relays")  # so that other plans stay as they are
        writers, database = apart.choice((1, 2, 4)), apart.choice(DATABASES)
        has_relays = apart.random() < RELAYED if relays is None else relays
        if has_relays and engine != MEMORY:
            kinds = {**kinds, **of_relays}
            clients = apart.choice((2, 8, 60))
        else:
            writers, database = 0, ""
        length = 30.0
        faults = []
        at, pause = 3.0, chance.choice((0.02, 0.04, 0.1, 0.3, 3.0))
        # where everything goes wrong at once, one fault hides what another one does
        number = chance.choice((1, 2, 4, len(kinds)))
        names = chance.sample(list(kinds), number)
        if chance.random() < 0.08:
            names = sorted(slow)
        elif writers and number <= 4:  # otherwise most of the plans had none of them
            names.append(apart.choice(list(of_relays)))
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
            chance.choice((0.0, 0.3, 0.3, 1.0)),
            chance.choice((SMALL_QUEUE, 10_000_000)),
            chance.choice((1_000, 128 * 1024)),
            chance.choice((2.0, 10.0, 30.0)),
            length,
            tuple(faults),
            engine == CONFIRMED or (engine == CLUSTER and chance.random() < 0.3),
            writers,
            database,
            engine == POSTGRESQL and polls,
            engine == POSTGRESQL and elsewhere.random() < 0.25,
            0 if seed % RARE else META_LIFETIME,
            seed % RARE == 0,
            engine == POSTGRESQL
            and database == POSTGRESQL
            and random.Random(f"{seed} joined").random() < JOINED,
            seed % MAPPED == 0,
        )

    def adding(self, pauses: Mapping[str, float]) -> Plan:
        """Return the plan with some more faults; those that it has stay as they are.

        Args:
            pauses: seconds between two of a kind, on average.
        """
        chance, faults = random.Random(f"{self.seed} added"), list(self.faults)
        for name, pause in pauses.items():
            at = 3.0 if chance.random() < ADDED else self.length
            while (at := at + chance.expovariate(1 / pause)) < self.length:
                faults.append(PlannedFault(at, name, chance.getrandbits(32)))
        return dataclasses.replace(self, faults=tuple(faults))

    def without(self, first: int, last: int) -> Plan:
        """Return the plan without some of its faults, by their places."""
        return dataclasses.replace(self, faults=(*self.faults[:first], *self.faults[last:]))

    def smaller(self) -> list[Plan]:
        """Return plans with less of one thing."""
        smaller = []
        for name in ("clients", "listeners", "nodes", "threads", "channels", "writers"):
            number = getattr(self, name)
            least = 0 if name in ("threads", "listeners") else 1  # faults of relays need writers
            if number > least:
                smaller.append(dataclasses.replace(self, **{name: max(least, number // 2)}))
        if self.faults:
            until = max(fault.at for fault in self.faults) + 2
            if until < self.length - 1:
                smaller.append(dataclasses.replace(self, length=until))
        return smaller
