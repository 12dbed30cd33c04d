"""SlotMap: which server of a cluster has which slot, as far as this process knows.

Any server may be asked, and may be behind the others for a moment. A redirect corrects what the map
says of one slot; a failure of any kind is a reason to ask again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Command, Reply
from realtime.redis.hosts import Host, Place, place_of

QUESTION: Command = (b"CLUSTER", b"SLOTS")

REFRESH_PAUSE = 1.0
"""Seconds between two questions that failures are the reason for."""

NO_CLUSTER = "cluster support disabled"

NAMELESS = " that has a name and a port (is a cluster-announce-hostname empty?)"


class Incomplete(EngineUnavailable):
    """A server says that slots which are used have no server."""

    places: dict[int, Place]
    """Where the other slots are."""
    others: list[Place]


class SlotMap:
    """See the module. Shared by all event loops and threads of a process."""

    def __init__(self, hosts: Sequence[Host], slots: Sequence[int]) -> None:
        """
        Args:
            hosts: servers to ask first. All servers have the credentials and TLS options of the
                first one: the names by which they know each other may be other ones.
            slots: those that are used.
        """
        self.slots = tuple(slots)
        self.places: dict[int, Place] = {}
        """Slot → its server. Empty before the first answer; lacks slots without a server."""
        self._stale: set[int] = set()
        self._hosts = hosts
        self._others: tuple[Place, ...] = ()
        """Replicas, which may have become primaries."""
        self._asked_at = float("-inf")

    @property
    def host(self) -> Host:
        """The first server of the options: its label names the cluster."""
        return self._hosts[0]

    def at(self, place: Place) -> Host:
        """Return the server at a place."""
        return self._hosts[0].at(place)

    def primaries(self) -> list[Place]:
        """Return the servers that have slots which are used."""
        return list(dict.fromkeys(self.places.values()))

    def others(self) -> list[Place]:
        """Return the servers to be asked if no primary answers."""
        known = self.primaries()
        places = [*self._others, *(host.place for host in self._hosts)]
        return [place for place in dict.fromkeys(places) if place not in known]

    def may_ask(self) -> bool:
        """Return whether it is time to ask because of a failure, and note that this happens."""
        now = time.monotonic()
        if now < self._asked_at + REFRESH_PAUSE:
            return False
        self._asked_at = now
        return True

    def moved(self, slot: int, place: Place) -> None:
        """Note that a slot belongs to another server now."""
        self.places = {**self.places, slot: place}
        self._stale.discard(slot)

    def forget(self, slot: int) -> None:
        """Note that a slot left its server, for one that is not known yet."""
        self._stale.add(slot)

    def knows(self, slot: int) -> bool:
        """Return whether the server of a slot is known, and no server has denied it since."""
        return slot in self.places and slot not in self._stale

    def take(self, asked: Place, reply: Reply) -> None:
        """Take over the answer of a server.

        Raises:
            EngineUnavailable: it is no answer.
            Incomplete: it says nothing of a slot that is used. Another server may know more.
        """
        try:
            ranges = list(_ranges(self.at(asked), reply))
        except (ValueError, TypeError, IndexError):
            raise self.at(asked).unavailable("its answer to CLUSTER SLOTS is none") from None
        places: dict[int, Place] = {}
        others: list[Place] = []
        nameless = False
        for first, last, primary, replicas in ranges:
            if primary is None:
                nameless = True
                continue
            places |= {slot: primary for slot in self.slots if first <= slot <= last}
            others += replicas
        if missing := len(set(self.slots)) - len(places):
            text = f"CLUSTERDOWN {missing} slots have no server{NAMELESS if nameless else ''}"
            incomplete = Incomplete(str(self.at(asked).unavailable(text)))
            incomplete.places, incomplete.others = places, others
            raise incomplete
        self._set(places, others)

    def take_incomplete(self, errors: Sequence[EngineUnavailable]) -> bool:
        """Take over what servers said of a part of the slots, where none said more.

        Args:
            errors: why there is no complete answer.

        Returns:
            Whether the server of any slot is known now.
        """
        answers = [error for error in errors if isinstance(error, Incomplete)]
        fullest = max(answers, key=lambda answer: len(answer.places), default=None)
        if fullest is None or not fullest.places:
            return False
        self._set({**self.places, **fullest.places}, fullest.others)
        return True

    def _set(self, places: dict[int, Place], others: Sequence[Place]) -> None:
        self.places = places
        self._stale.clear()
        self._others = tuple(dict.fromkeys(others))

    def unserved(self, slot: int) -> EngineUnavailable:
        """Return the exception for a slot that has no server."""
        return self.host.unavailable(f"CLUSTERDOWN slot {slot} has no server")

    def away(self, errors: Sequence[EngineUnavailable]) -> EngineUnavailable:
        """Return the exception for a cluster of which no server answered."""
        text = "; ".join(str(error) for error in errors)
        if NO_CLUSTER in text:
            text += " (redis_cluster_addrs names a Redis that is no cluster: use redis_url)"
        return EngineUnavailable(f"no server of the Redis Cluster answered: {text}")


def _ranges(asked: Host, reply: Reply) -> Iterator[tuple[int, int, Place | None, list[Place]]]:
    """Yield first and last slot, the primary unless it has no name, and its replicas."""
    for first, last, *servers in reply:
        named = [place_of(server[0], server[1], asked) for server in servers]
        yield int(first), int(last), named[0], [place for place in named[1:] if place]
