"""Faults of durable publications: of relays, of writers, of the site's database.

Each returns whether it could happen at that moment, as those of `faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.postgresql_faults import end
from tests.simulation.site_database import Session, SiteDatabase, Trap
from tests.simulation.site_joined import JoinedDatabase
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.faults import Fault
    from tests.simulation.scenario import Service
    from tests.simulation.site import Site

STEPS = ("", "DELETE", "DELETE", "COMMIT", "UPDATE", "SKIP LOCKED", "held", "UNION")
"""Words in statements of a relay: where it is killed, most of all between publish and delete."""
JOINED_STEPS = ("publish(", "publish(", "pg_notify", "COMMIT")
REFUSALS = (
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist.",
    "READONLY You can't write against a read only replica.",
)


def _site(service: Service) -> Site:
    assert service.site is not None
    return service.site


def _database(service: Service) -> SiteDatabase:
    return _site(service).database


def _at_a_step(spring: Callable[[Service, Random, Process], object]) -> Fault:
    """Return a fault that waits for the next relay at one of its steps."""

    def fault(service: Service, chance: Random) -> bool:
        database = _database(service)
        if database.trap is not None:
            return False
        relays = {member.process for member in service.nodes}

        def sprung(session: Session) -> None:
            service.judge.note(f"{session.process} is at the step")
            spring(service, chance, session.process)

        steps = (*STEPS, *JOINED_STEPS) if service.plan.is_joined else STEPS
        word, is_before = chance.choice(steps), chance.random() < 0.5
        database.trap = Trap(word, is_before, relays.__contains__, sprung)
        return True

    return fault


def _kill(service: Service, chance: Random, process: Process) -> None:
    member = next(each for each in service.nodes if each.process is process)
    process.kill()
    service.world.after(chance.uniform(0.1, 5), member.start)


def _freeze(service: Service, chance: Random, process: Process) -> None:
    process.freeze()
    service.world.after(chance.choice((1.0, 4.0, 8.0, 15.0)), process.thaw)


def _kill_writer(service: Service, chance: Random) -> bool:
    alive = [writer for writer in _site(service).writers if writer.process.alive]
    if not alive:
        return False
    writer = chance.choice(alive)
    writer.process.kill()
    service.world.after(chance.uniform(0.1, 5), writer.start)
    return True


def _leave(service: Service, chance: Random) -> bool:
    seconds = chance.choice((0.0, 0.5, 3.0, 8.0))
    if service.plan.is_joined:
        return end(service, "crashed", seconds)
    _database(service).leave(seconds)
    return True


def _stall(service: Service, chance: Random) -> bool:
    _database(service).stall(chance.uniform(0.1, 6.0))
    return True


def _lose_connection(service: Service, chance: Random) -> bool:
    sessions = _database(service).sessions()
    if sessions:
        chance.choice(sessions).lose()
    return bool(sessions)


def _lose_answer(service: Service, chance: Random) -> bool:
    """Of the next commit, which has been made, or was not."""
    database = _database(service)
    if database.trap is not None:
        return False
    database.trap = Trap("COMMIT", chance.random() < 0.5, lambda _: True, Session.lose)
    return True


def _refuse(service: Service, chance: Random) -> bool:
    if service.postgresql is not None:
        return False  # it has faults of its own
    database = chance.choice(service.shards).master.database
    if database.refusal:
        return False
    error = chance.choice(REFUSALS)
    if chance.random() < 0.5:  # memory is freed in the middle of a batch
        database.refuse(error, chance.randint(1, 3))
    else:
        database.refuse(error, -1)
        service.world.after(chance.choice((0.05, 2.0, 6.0)), database.refuse, "", 0)
    return True


def _refuse_within(service: Service, chance: Random) -> bool:
    """For good: relays have to publish in another way."""
    database = _database(service)
    if isinstance(database, JoinedDatabase):
        database.refuses = True
    return isinstance(database, JoinedDatabase)


RELAY_FAULTS: Mapping[str, tuple[Fault, int]] = {
    "a relay is killed at a step": (_at_a_step(_kill), 6),
    "a relay freezes at a step": (_at_a_step(_freeze), 6),
    "a writer is killed": (_kill_writer, 4),
    "the database is away": (_leave, 4),
    "the database stalls": (_stall, 2),
    "a connection to the database is lost": (_lose_connection, 10),
    "the answer to a commit is lost": (_lose_answer, 10),
    "Redis refuses to write": (_refuse, 6),
}
"""By name: the fault, and how often it is drawn."""
JOINED_FAULTS: Mapping[str, tuple[Fault, float]] = {
    "transactions may not publish": (_refuse_within, 5.0),
}
"""As `faults.ADDED_FAULTS`, where rows and streams are in one server."""
