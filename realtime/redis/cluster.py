"""LoopCluster: commands to a Redis Cluster from an event loop, over one connection for each server.

    LoopCluster   the servers, and the map of slots, which is loaded when it is needed
    Route         the way to the server of one slot: has the methods of a `Connection`

A route is straight or turning.

    straight ── a command was redirected, or the slot is unknown ──► turning
    turning ── what was under way has its reply, and all that waited was sent ──► straight

Calls send at once while the route is straight, and wait otherwise. A turn first waits for every
reply that is under way, then sends what was redirected, in its order, then what came meanwhile. So
none overtakes another when a slot moves. One exception: while a slot is moving, a call for two keys
may be told to try again, and one behind it may not, because a key arrived in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Calls, Command, Reply, Request, Wait, in_full
from realtime.redis.connection import Connection
from realtime.redis.hosts import Place, Timeouts
from realtime.redis.redirects import Redirected
from realtime.redis.replicas import shortage
from realtime.redis.slot_map import QUESTION, SlotMap

RETRY_DELAY = 0.02
MAX_RETRY_DELAY = 0.2
"""Seconds between attempts while a slot is moving; they double."""

QUICK_TURNS = 3
"""Redirects that a call follows at once; servers that send it to each other must not be flooded."""

Servers = dict[Place, Connection]
Turn = asyncio.Future[EngineUnavailable | None]
"""A call that waits to send, or to be refused."""


class LoopCluster:
    """Connects when it is needed. Belongs to one event loop."""

    def __init__(self, slots: SlotMap, timeouts: Timeouts) -> None:
        self.map = slots
        self.timeouts = timeouts
        self._commands: Servers = {}
        self._confirming: Servers = {}
        self._loading: asyncio.Task[None] | None = None
        self.changed = asyncio.get_running_loop().create_future()
        """Done when the map of slots changes; then there is another one."""
        self.on_loaded: Callable[[], None] = lambda: None
        """Called when a server has answered."""
        self._closed = False
        self.routes = [Route(self, slot, self._commands) for slot in slots.slots]
        """The way to each slot, for commands."""
        self.confirming = [Route(self, slot, self._confirming) for slot in slots.slots]
        """The way to each slot, for messages that wait for replicas."""

    def connection(self, servers: Servers, place: Place) -> Connection:
        """Return the connection to a server.

        Raises:
            EngineUnavailable: closed here.
        """
        connection = servers.get(place)
        if connection is None:
            if self._closed:
                raise self.map.host.unavailable("closed here")
            connection = servers[place] = Connection(self.map.at(place), self.timeouts)
        return connection

    async def load(self) -> None:
        """Ask for the map of slots. Callers at the same time share one question.

        Raises:
            EngineUnavailable: no server answered.
        """
        if self._closed:
            raise self.map.host.unavailable("closed here")
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
            self._loading.add_done_callback(self._loaded)
        try:
            await asyncio.shield(self._loading)
        except EngineUnavailable as error:
            raise EngineUnavailable(str(error)) from None  # each caller its own: tracebacks grow

    def doubt(self) -> None:
        """Ask for the map, soon: a server failed, or said that another one has a slot."""
        if not self._closed and self._loading is None and self.map.may_ask():
            self._loading = asyncio.create_task(self._load())
            self._loading.add_done_callback(self._loaded)

    def _loaded(self, task: asyncio.Task[None]) -> None:
        self._loading = None
        # the exception is retrieved here; those who wait for it have it, too
        if not task.cancelled() and task.exception() is None:
            self.on_loaded()

    async def _load(self) -> None:
        self.map.may_ask()
        errors: list[EngineUnavailable] = []
        for places in (self.map.primaries(), self.map.others()):
            if await self._first_answer(places, errors):
                self._close_unused()
                return
        before = self.map.places
        if not self.map.take_incomplete(errors):
            raise self.map.away(errors)
        self._note_change(before)

    async def _first_answer(self, places: list[Place], errors: list[EngineUnavailable]) -> bool:
        asking = [asyncio.create_task(self._ask(place, errors)) for place in places]
        try:
            for answer in asyncio.as_completed(asking):
                if await answer:
                    return True
        finally:
            for task in asking:
                task.cancel()
            if asking:
                await asyncio.wait(asking)
        return False

    async def _ask(self, place: Place, errors: list[EngineUnavailable]) -> bool:
        """Ask one server, and return whether its answer is the map now."""
        try:
            async with asyncio.timeout(self.timeouts.connect):
                reply = await self.connection(self._commands, place).execute(*QUESTION)
            before = self.map.places
            self.map.take(place, reply)
            self._note_change(before)
        except TimeoutError:
            errors.append(self.map.at(place).unavailable("no answer in time"))
        except EngineUnavailable as error:
            errors.append(error)
        else:
            return True
        return False

    def _note_change(self, before: dict[int, Place]) -> None:
        if self.map.places != before:
            self.changed.set_result(None)
            self.changed = asyncio.get_running_loop().create_future()

    def _close_unused(self) -> None:
        """Close connections to servers without slots: replicas, and names of other servers.

        Those of which a reply is awaited stay until the next time: a slot may be moving there, and
        the server that was asked may be behind.
        """
        used = self.map.primaries()
        for servers in (self._commands, self._confirming):
            for place, connection in list(servers.items()):
                if place in used or not connection.is_idle:
                    continue
                task = asyncio.ensure_future(servers.pop(place).close())
                _closing.add(task)
                task.add_done_callback(_closing.discard)

    async def close(self) -> None:
        """Fail the calls that wait, and close; bounded in time. Later calls fail, too."""
        self._closed = True
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        for route in (*self.routes, *self.confirming):
            await route.close()
        connections = [*self._commands.values(), *self._confirming.values()]
        await asyncio.gather(*(connection.close() for connection in connections))


_closing: set[asyncio.Future[None]] = set()
"""Connections that are being closed: asyncio keeps no task alive by itself."""


class Route(Calls):
    """See the module."""

    def __init__(self, cluster: LoopCluster, slot: int, servers: Servers) -> None:
        self._cluster = cluster
        self._slot = slot
        self._servers = servers
        self._in_flight = 0
        """Calls that wait for a reply."""
        self._idle: asyncio.Future[None] | None = None
        """Of the turn that waits until there are none."""
        self._refused: deque[Turn] = deque()
        """Calls that were redirected, in their order."""
        self._waiting: deque[Turn] = deque()
        """Calls that came while the route turned."""
        self._turning: asyncio.Task[None] | None = None
        self._delay = 0.0
        """Seconds that the next turn waits."""

    async def call(self, request: Request, wait: Wait | None = None) -> Reply:
        """As `Connection.call`, and again where a server says so, until there is a reply.

        Raises:
            EngineUnavailable: also if the slot is moving for too long.
        """
        cluster = self._cluster
        if self._turning is not None or self._slot not in cluster.map.places:
            await self._wait_for_turn(self._waiting)
        deadline = asyncio.get_running_loop().time() + cluster.timeouts.answer
        asked: Place | None = None
        turns = 0
        while True:
            self._in_flight += 1
            try:
                if asked is not None:
                    link = cluster.connection(self._servers, asked)
                    return await _send_asking(link, in_full(request), wait)
                place = cluster.map.places[self._slot]
                return await cluster.connection(self._servers, place).call(request, wait)
            except Redirected as error:
                turns += 1
                if asyncio.get_running_loop().time() > deadline:
                    raise
                asked = error.place if error.code == "ASK" else None
                self._heed(error, turns)
            except EngineUnavailable:
                cluster.doubt()
                raise
            finally:
                self._in_flight -= 1
                if self._idle is not None and not self._in_flight and not self._idle.done():
                    self._idle.set_result(None)
            await self._wait_for_turn(self._refused)

    def _heed(self, error: Redirected, turns: int) -> None:
        if error.code == "MOVED" and error.place is not None:
            self._cluster.map.moved(self._slot, error.place)
            self._cluster.doubt()  # other slots may have moved with it
        if error.code == "TRYAGAIN" or turns > QUICK_TURNS:
            self._delay = min(max(2 * self._delay, RETRY_DELAY), MAX_RETRY_DELAY)

    async def _wait_for_turn(self, queue: deque[Turn]) -> None:
        if self._cluster._closed:
            raise self._cluster.map.host.unavailable("closed here")
        turn: Turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        if self._turning is None:
            self._turning = asyncio.create_task(self._turn())
        error = await turn
        if error is not None:
            raise EngineUnavailable(str(error))

    async def _turn(self) -> None:
        """Let the calls that wait send, in order, until none is left."""
        try:
            while self._refused or self._waiting:
                while self._refused and self._in_flight:
                    self._idle = asyncio.get_running_loop().create_future()
                    await self._idle
                await self._find_server()
                delay = self._delay if self._refused else 0.0
                if delay:
                    await asyncio.sleep(delay)
                calls = [*self._refused, *self._waiting]
                self._refused.clear()
                self._waiting.clear()
                for call in calls:
                    if not call.done():
                        call.set_result(None)
                await asyncio.sleep(0)  # they send before any call that comes now
            self._delay = 0.0
        except EngineUnavailable as error:
            self._refuse(error)
        finally:
            self._turning = self._idle = None

    async def _find_server(self) -> None:
        slots = self._cluster.map
        if self._slot in slots.places:
            return
        if not slots.places or slots.may_ask():
            await self._cluster.load()
        if self._slot not in slots.places:
            raise slots.unserved(self._slot)

    def _refuse(self, error: EngineUnavailable) -> None:
        for call in (*self._refused, *self._waiting):
            if not call.done():
                call.set_result(error)
        self._refused.clear()
        self._waiting.clear()

    async def close(self) -> None:
        """Fail the calls that wait."""
        if self._turning is not None:
            self._turning.cancel()
            await asyncio.wait([self._turning])
        self._refuse(self._cluster.map.host.unavailable("closed here"))


async def _send_asking(connection: Connection, command: Command, wait: Wait | None) -> Reply:
    reply = await connection.execute_asking(*command)
    if wait is not None:
        confirmed = await connection.execute(*wait.command())
        if (error := shortage(wait, connection.host, confirmed)) is not None:
            raise error
    return reply
