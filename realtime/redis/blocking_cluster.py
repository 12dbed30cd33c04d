"""BlockingCluster: commands of threads to a Redis Cluster.

Each server has a `BlockingRedis`, whose promise holds here, too: a connection of which a reply was
not read is never used again. A thread waits for its replies, so its commands keep their order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from realtime.errors import EngineUnavailable
from realtime.redis.blocking import BlockingRedis
from realtime.redis.cluster import MAX_RETRY_DELAY, QUICK_TURNS, RETRY_DELAY
from realtime.redis.commands import BlockingCalls, Command, Reply, Request, Wait, in_full
from realtime.redis.hosts import Place, Timeouts
from realtime.redis.redirects import Redirected
from realtime.redis.replicas import TooFewReplicas, shortage
from realtime.redis.slot_map import QUESTION, SlotMap


class Routed(NamedTuple):
    """A request on its way."""

    client: BlockingRedis | BlockingRoute
    request: Request
    wait: Wait | None = None
    """For replicas, after it."""


def run_many(requests: Sequence[Routed], *, reads: bool = False) -> list[Reply | EngineUnavailable]:
    """Make requests in one round trip to each server. Those to one shard keep their order.

    Args:
        requests: what to do.
        reads: they are scripts that only read.

    Returns:
        The reply to each, or an exception; see `BlockingRedis.run_many` and `read_many`.
    """
    results: list[Reply | EngineUnavailable] = [None] * len(requests)
    for server, indexes in _by_server([each.client for each in requests]).items():
        group = [requests[index] for index in indexes]
        try:
            if isinstance(server, EngineUnavailable):
                raise server
            some = [each.request for each in group]
            waits = [each.wait for each in group]
            replies = server.read_many(some) if reads else server.run_many(some, waits)
        except EngineUnavailable as error:
            replies = [error] * len(group)
            if isinstance(route := group[0].client, BlockingRoute) and error is not server:
                route.doubt()
        for index, each, reply in zip(indexes, group, replies, strict=True):
            results[index] = _again(each, reply) if isinstance(reply, Redirected) else reply
    return results


def _by_server(
    clients: Sequence[BlockingRedis | BlockingRoute],
) -> dict[BlockingRedis | EngineUnavailable, list[int]]:
    """Return the server of each client, or why there is none, with the indexes of its clients."""
    servers: dict[BlockingRedis | BlockingRoute, BlockingRedis | EngineUnavailable] = {}
    away: EngineUnavailable | None = None
    for client in dict.fromkeys(clients):
        try:
            servers[client] = client.server(away)
        except EngineUnavailable as error:
            servers[client] = away = error
    groups: dict[BlockingRedis | EngineUnavailable, list[int]] = {}
    for index, client in enumerate(clients):
        groups.setdefault(servers[client], []).append(index)
    return groups


def _again(routed: Routed, redirected: Redirected) -> Reply | EngineUnavailable:
    """Make a request that was redirected once more. Those of one slot keep their order."""
    if isinstance(routed.client, BlockingRedis):
        return redirected
    try:
        return routed.client.call(routed.request, routed.wait, redirected)
    except EngineUnavailable as error:
        return error


class BlockingCluster:
    """For any number of threads; opens connections when they are needed."""

    def __init__(self, slots: SlotMap, timeouts: Timeouts) -> None:
        self.map = slots
        self.timeouts = timeouts
        self._clients: dict[Place, BlockingRedis] = {}

    def client(self, place: Place) -> BlockingRedis:
        """Return the client of a server."""
        client = self._clients.get(place)
        if client is None:
            client = BlockingRedis(self.map.at(place), self.timeouts)
            client = self._clients.setdefault(place, client)
        return client

    def load(self, last: Place | None = None) -> None:
        """Ask for the map of slots.

        Args:
            last: the server to ask only if no other one answers.

        Raises:
            EngineUnavailable: no server answered.
        """
        errors: list[EngineUnavailable] = []
        places = [*self.map.primaries(), *self.map.others()]
        for place in sorted(places, key=lambda place: place == last):
            try:
                self.map.take(place, self._ask(place))
            except EngineUnavailable as error:
                errors.append(error)
            else:
                self.leave_unused()
                return
        if not self.map.take_incomplete(errors):
            raise self.map.away(errors)

    def leave_unused(self) -> None:
        """Close idle connections to servers without slots; the others go with their last user."""
        used = self.map.primaries()
        for place in list(self._clients):
            if place not in used and (client := self._clients.pop(place, None)) is not None:
                client.close_idle()

    def _ask(self, place: Place) -> Reply:
        """Ask one server, for no longer than a connection may take: the caller has waited."""
        connect = self.timeouts.connect
        client = BlockingRedis(self.map.at(place), Timeouts(connect, connect), 1)
        try:
            return client.execute(*QUESTION)
        finally:
            client.close()

    def doubt(self, failed: Place | None) -> None:
        """Ask for the map, unless that was done a moment ago. Raises nothing.

        Args:
            failed: the server that gave the reason.
        """
        if self.map.may_ask():
            with contextlib.suppress(EngineUnavailable):  # the caller has a failure to report
                self.load(failed)

    def close(self) -> None:
        """Close the connections, also those that are in use."""
        while self._clients:
            self._clients.popitem()[1].close()


class BlockingRoute(BlockingCalls):
    """The way to the server of one slot."""

    def __init__(self, cluster: BlockingCluster, slot: int) -> None:
        self.cluster = cluster
        self._slot = slot

    def place(self) -> Place:
        """Return the server of the slot, as the map says.

        Raises:
            EngineUnavailable: the cluster is away, or the slot has no server.
        """
        slots = self.cluster.map
        if self._slot not in slots.places and (not slots.places or slots.may_ask()):
            self.cluster.load()
        if self._slot not in slots.places:
            raise slots.unserved(self._slot)
        return slots.places[self._slot]

    def server(self, away: EngineUnavailable | None = None) -> BlockingRedis:
        """Return the client of the server of the slot, as the map says.

        Args:
            away: why no server could be asked a moment ago: each question would take its time.

        Raises:
            EngineUnavailable: the cluster is away, or the slot has no server.
        """
        if away is not None and not self.cluster.map.places:
            raise away
        return self.cluster.client(self.place())

    def doubt(self) -> None:
        """See `BlockingCluster.doubt`, about the server of the slot."""
        self.cluster.doubt(self.cluster.map.places.get(self._slot))

    def call(
        self, request: Request, wait: Wait | None = None, redirected: Redirected | None = None
    ) -> Reply:
        """As `BlockingRedis.call`, and again where a server says so, until there is a reply.

        Args:
            redirected: what a server has answered already.

        Raises:
            EngineUnavailable: also if the slot is moving for too long.
        """
        deadline = time.monotonic() + self.cluster.timeouts.answer
        delay, turns = RETRY_DELAY, 0
        while True:
            place = self.place()
            try:
                if redirected is not None:
                    error, redirected = redirected, None
                    raise error
                return self.cluster.client(place).call(request, wait)
            except Redirected as error:
                asked = self._heed(error)
                turns += 1
                if time.monotonic() > deadline:
                    raise
                if asked is None and (error.code == "TRYAGAIN" or turns > QUICK_TURNS):
                    time.sleep(delay)
                    delay = min(2 * delay, MAX_RETRY_DELAY)
            except EngineUnavailable as error:
                if not isinstance(error, TooFewReplicas):
                    self.cluster.doubt(place)
                raise
            if asked is not None:
                try:
                    return self._ask(asked, in_full(request), wait)
                except Redirected as error:
                    redirected = error if error.code == "MOVED" else None
                    time.sleep(delay)
                    delay = min(2 * delay, MAX_RETRY_DELAY)

    def _heed(self, error: Redirected) -> Place | None:
        """Note where a slot is; return the server to ask for this command alone, or None."""
        if error.code == "MOVED" and error.place is not None:
            self.cluster.map.moved(self._slot, error.place)
            self.cluster.leave_unused()
        return error.place if error.code == "ASK" else None

    def _ask(self, place: Place, command: Command, wait: Wait | None) -> Reply:
        client = self.cluster.client(place)
        reply = client.execute_asking(*command)
        if wait is not None:
            # on another connection, so this waits for more than the command: all that was written
            confirmed = client.execute(*wait.command())
            if (error := shortage(wait, self.cluster.map.at(place), confirmed)) is not None:
                raise error
        return reply

    def close(self) -> None:
        """Close the connections to all servers; they are opened again when needed."""
        self.cluster.close()
