"""Faults of PostgreSQL: of its connections, backends, commits, and of the server.

Each returns whether it could happen at that moment, as those of `faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.network import Link
from tests.simulation.postgresql_server import PostgreSQL

if TYPE_CHECKING:
    from tests.simulation.faults import Fault
    from tests.simulation.scenario import Service

RESTARTS = ("stopped", "crashed", "crashed")
AT_ONCE = 1e-6
"""Seconds after a failover: the old server publishes nothing more."""


def server_of(service: Service) -> PostgreSQL:
    """Return the server of a service that has one."""
    assert service.postgresql is not None
    return service.postgresql


def _with_link(change: Callable[[Link, Random], object], *, listens: bool | None = None) -> Fault:
    """Return a fault of a connection. `listens`: whether it is one on which a node listens."""

    def fault(service: Service, chance: Random) -> bool:
        server = server_of(service)
        links = [
            backend.link
            for backend in server.backends
            if backend.link is not None and listens in (None, backend in server.listening)
        ]
        if links:
            change(chance.choice(links), chance)
        return bool(links)

    return fault


def _kill_backend(service: Service, chance: Random) -> bool:
    backends = list(server_of(service).backends)
    if backends:
        chance.choice(backends).terminate()
    return bool(backends)


def _lose_answer(service: Service, chance: Random) -> bool:
    server_of(service).loses_answer = True
    return True


def _refuse_rings(service: Service, chance: Random) -> bool:
    server_of(service).has_no_room = chance.choice((1, 2, 20))
    return True


def _freeze(service: Service, chance: Random) -> bool:
    process = server_of(service).process
    if process.frozen or not process.alive:
        return False
    process.freeze()
    service.world.after(chance.choice((0.05, 1.0, 6.5)), process.thaw)
    return True


def _slow_down(service: Service, chance: Random) -> bool:
    """Beyond the time limit of statements, too."""
    server_of(service).slow_until = service.world.now + chance.choice((0.2, 2.0, 5.05, 8.0))
    return True


def _stall_disk(service: Service, chance: Random) -> bool:
    server_of(service).stalled_until = service.world.now + chance.choice((0.2, 2.0, 7.0))
    return True


def _fill(service: Service, chance: Random) -> bool:
    """Have other programs take all connections that are left."""
    server = server_of(service)
    if server.is_full:
        return False
    server.is_full = True
    service.world.after(chance.choice((0.5, 3.0, 10.0)), setattr, server, "is_full", False)
    return True


def _move_clock(service: Service, chance: Random) -> bool:
    server_of(service).skew = chance.uniform(-5, 5)
    return True


def end(service: Service, how: str, seconds: float) -> bool:
    """End the server, and begin it again in so many seconds."""
    server, site = server_of(service), service.site
    if not server.process.alive:
        return False
    lost = server.restart(how, seconds)
    if how == "lost":
        service.wishes.lose()
        service.judge.may_lose_keys = True
        if site is not None:
            site.judge.lose(AT_ONCE)
    for table, key in lost:
        if table == "entry":
            service.judge.lose(server.numbers.get(key))
            if site is not None and service.plan.is_joined:
                site.judge.unpublish(server.numbers.get(key))
    return True


def _restart(service: Service, chance: Random) -> bool:
    return end(service, chance.choice(RESTARTS), chance.uniform(0.05, 4))


def _fail_over(service: Service, chance: Random) -> bool:
    how = "lost" if service.plan.loses_commits else "replaced"
    return end(service, how, chance.uniform(0.05, 8))


POSTGRESQL_FAULTS: Mapping[str, tuple[Fault, int]] = {
    "a connection to PostgreSQL is cut": (_with_link(lambda link, _: link.cut()), 6),
    "a connection to PostgreSQL stalls": (
        _with_link(lambda link, chance: link.stall(chance.uniform(0.01, 8))),
        4,
    ),
    "a connection to PostgreSQL goes deaf": (_with_link(lambda link, _: link.deafen()), 2),
    "a node that listens is cut off": (_with_link(lambda link, _: link.cut(), listens=True), 3),
    "a node that listens goes deaf": (_with_link(lambda link, _: link.deafen(), listens=True), 2),
    "a backend is killed": (_kill_backend, 6),
    "the answer to a commit of PostgreSQL is lost": (_lose_answer, 6),
    "PostgreSQL takes no rings": (_refuse_rings, 4),
    "PostgreSQL freezes": (_freeze, 1),
    "PostgreSQL is slow": (_slow_down, 2),
    "the disk of PostgreSQL stalls": (_stall_disk, 2),
    "PostgreSQL refuses connections": (_fill, 2),
    "the clock of PostgreSQL jumps": (_move_clock, 1),
    "PostgreSQL restarts": (_restart, 1),
    "PostgreSQL fails over": (_fail_over, 1),
}
"""By name: the fault, and how often it is drawn."""
