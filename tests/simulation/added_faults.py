"""Faults that some plans have besides others, drawn apart: other plans stay as they are.

Each returns whether it could happen at that moment, as those of `faults`.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.faults import Fault
    from tests.simulation.scenario import Service

LOST_ON_THE_WAY = "a publication from Redis is lost"


def _lose_on_the_way(service: Service, chance: Random) -> bool:
    """Let a publication not reach one of its subscribers, as where a buffer is full."""
    shard = chance.choice(service.shards) if service.shards else None
    if shard is None or not service.plan.position_checks:
        return False  # nothing else notices the last one of a stream
    shard.master.drops = True
    service.judge.losses.append(service.world.now)
    return True


def _stay_behind_newcomers(service: Service, chance: Random) -> bool:
    """Clients come back while what nodes are told of publications is late."""
    listening = [end.link for end in service.network.ends if getattr(end.receiver, "names", None)]
    for link in listening:
        link.stall(chance.uniform(0.3, 3.0))
    for _ in range(1 + len(service.peers) // 4 if listening else 0):  # others stay
        if ends := [peer.end for peer in service.peers if peer.end is not None]:
            chance.choice(ends).link.cut()
    return bool(listening)


ADDED_FAULTS: Mapping[str, tuple[Fault, float]] = {
    LOST_ON_THE_WAY: (_lose_on_the_way, 1.0),
    "publications from Redis are late": (_stay_behind_newcomers, 2.0),
}
"""By name: the fault, and seconds between two in the plans of Redis that have it besides others."""
