"""BlockingCluster: commands of threads to a Redis Cluster.

Each server has a `BlockingRedis`, whose promise holds here, too: a connection of which a reply was
not read is never used again. A thread waits for its replies, so its commands keep their order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from realtime.errors import EngineUnavailable
from realtime.redis.blocking import BlockingRedis, in_groups
from realtime.redis.cluster import MAX_RETRY_DELAY, QUICK_TURNS, RETRY_DELAY
from realtime.redis.commands import Argument, Command, Reply, Request, Script, ScriptCall, Wait
from realtime.redis.hosts import Place, Timeouts
from realtime.redis.redirects import Redirected
from realtime.redis.replicas import TooFewReplicas, shortage
from realtime.redis.slot_map import QUESTION, SlotMap

R = TypeVar("R")


class Routed(NamedTuple):
    """A request on its way."""

    route: BlockingRoute
    request: Request
    wait: Wait | None = None
    """For replicas, after it."""


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

    def run_many(self, requests: Sequence[Routed]) -> list[Reply | EngineUnavailable]:
        """Make requests in one round trip to each server. Those to one slot keep their order.

        Returns:
            The reply to each, or an exception; see `BlockingRedis.run_many`.
        """

        def send(place: Place | EngineUnavailable, group: Sequence[int]) -> list[Reply]:
            some = [requests[index] for index in group]
            wait = max((each.wait for each in some if each.wait), default=None)
            return self.send(place, some, lambda client, them: client.run_many(them, wait))

        return in_groups(self._places([each.route for each in requests]), send)

    def read_many(self, calls: Sequence[Routed]) -> list[Reply | EngineUnavailable]:
        """Run scripts that only read, in one round trip to each server; see `run_many`."""

        def send(place: Place | EngineUnavailable, group: Sequence[int]) -> list[Reply]:
            return self.send(place, [calls[index] for index in group], BlockingRedis.read_many)

        return in_groups(self._places([each.route for each in calls]), send)

    def _places(self, routes: Sequence[BlockingRoute]) -> list[Place | EngineUnavailable]:
        """Return the server of each route, or why there is none."""
        places: dict[BlockingRoute, Place | EngineUnavailable] = {}
        away: EngineUnavailable | None = None
        for route in dict.fromkeys(routes):
            if away is not None and not self.map.places:  # each question would take its time
                places[route] = away
                continue
            try:
                places[route] = route.place()
            except EngineUnavailable as error:
                places[route] = away = error
        return [places[route] for route in routes]

    def send(
        self,
        place: Place | EngineUnavailable,
        group: Sequence[Routed],
        send: Callable[[BlockingRedis, Sequence[Any]], list[Reply | EngineUnavailable]],
    ) -> list[Reply | EngineUnavailable]:
        """Send requests together to a server, and those again that were redirected.

        Args:
            place: the server; or the exception to raise, because there is none.
            group: the requests.
            send: sends them to the client of a server.

        Raises:
            EngineUnavailable: the server is away.
        """
        if isinstance(place, EngineUnavailable):
            raise place
        try:
            results = send(self.client(place), [each.request for each in group])
        except EngineUnavailable:
            self.doubt(place)
            raise
        for index, each in enumerate(group):
            redirected = results[index]
            if isinstance(redirected, Redirected):
                try:
                    results[index] = each.route.again(each.request, each.wait, redirected)
                except EngineUnavailable as error:
                    results[index] = error
        return results

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


class BlockingRoute:
    """The way to the server of one slot: has the methods of `BlockingRedis`."""

    def __init__(self, cluster: BlockingCluster, slot: int) -> None:
        self.cluster = cluster
        self._slot = slot

    def execute(self, *args: Argument) -> Reply:
        """As `BlockingRedis.execute`."""
        return self._call(lambda client: client.execute(*args), args)

    def run(self, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument]) -> R:
        """As `BlockingRedis.run`."""
        result: R = self._call(
            lambda client: client.run(script, keys, arguments), script.by_text(keys, arguments)
        )
        return result

    def run_confirmed(
        self, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument], wait: Wait
    ) -> R:
        """As `BlockingRedis.run_confirmed`."""
        result: R = self._call(
            lambda client: client.run_confirmed(script, keys, arguments, wait),
            script.by_text(keys, arguments),
            wait,
        )
        return result

    def run_many(
        self, requests: Iterable[Request], wait: Wait | None = None
    ) -> list[Reply | EngineUnavailable]:
        """As `BlockingRedis.run_many`; what is redirected is sent again, in its order."""
        group = [Routed(self, request, wait) for request in requests]
        return self.cluster.send(
            self.place(), group, lambda client, some: client.run_many(some, wait)
        )

    def again(self, request: Request, wait: Wait | None, redirected: Redirected) -> Reply:
        """Make a request again that was redirected. Errors as `BlockingRedis.execute`."""
        if not isinstance(request, ScriptCall):
            return self._call(lambda client: client.execute(*request), request, None, redirected)
        text = request.script.by_text(request.keys, request.arguments)
        if wait is None:
            return self._call(lambda client: client.run(*request), text, None, redirected)
        return self._call(
            lambda client: client.run_confirmed(*request, wait), text, wait, redirected
        )

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

    def _call(
        self,
        send: Callable[[BlockingRedis], Reply],
        command: Command,
        wait: Wait | None = None,
        redirected: Redirected | None = None,
    ) -> Reply:
        """Send, and again where a server says so, until there is a reply.

        Args:
            send: sends to a server.
            command: the same, for a server to which the slot is moving.
            wait: for replicas, after `command`.
            redirected: what a server has answered already.

        Raises:
            EngineUnavailable: as `BlockingRedis.execute`; or the slot is moving for too long.
        """
        deadline = time.monotonic() + self.cluster.timeouts.answer
        delay, turns = RETRY_DELAY, 0
        while True:
            place = self.place()
            try:
                if redirected is not None:
                    error, redirected = redirected, None
                    raise error
                return send(self.cluster.client(place))
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
                    return self._ask(asked, command, wait)
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
