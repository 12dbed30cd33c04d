"""Network: links between processes, and what may happen to them.

A link has two ends, one in each process. What one end writes arrives at the other in its order,
after a delay; links do not wait for each other.

States of a link, and the events that lead to them:

    OPEN      what is written arrives
    STALLED   nothing arrives until a moment; then everything does, in its order
    DEAF      nothing arrives ever again, and neither end learns of it, as when a host is gone
    ENDED     an end was closed, or the link was cut: each end that lives learns it, once

    OPEN ── stall ──► STALLED ── its moment ──► OPEN
    OPEN, STALLED ── deafen ──► DEAF
    OPEN, STALLED ── cut, close, abort ──► ENDED
    DEAF ── close, abort ──► ENDED for that end alone

An end may read slowly, or nothing, for a while: what is sent to it waits. What waits beyond
`KERNEL` is the backlog of the other end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from tests.simulation.world import Process, World

Place = tuple[Any, ...]

DELAY = 0.000_3
"""Seconds that most of what is sent is under way, on average."""
SLOW = 0.02
"""One in so many is late."""
SPLIT = 0.05
"""One in so many pieces of bytes arrives as two."""


KERNEL = 1000
"""Bytes that are under way, or in the buffers of both hosts; a process has the others left."""

PING_TIMEOUT = 50.0
"""Seconds until a server of WebSockets finds that a peer answers none of its pings."""


class Receiver(Protocol):
    """What an end gives to its process."""

    def connection_made(self, transport: Any) -> None: ...
    def data_received(self, data: Any) -> None: ...
    def connection_lost(self, error: Exception | None) -> None: ...


class _Socket:
    """Stands for the socket of a transport, which gets options."""

    def setsockopt(self, *arguments: Any) -> None:
        pass


class End(asyncio.Transport):
    """One end of a link: the transport that its process writes to."""

    peer: End

    def __init__(self, link: Link, process: Process, receiver: Receiver) -> None:
        super().__init__({"socket": _Socket()})
        self.link = link
        self.process = process
        self.receiver = receiver
        self.ended = False
        """Whether the process closed it, or has learnt that it is lost."""
        self._arrived: list[Any] = []
        self._held: list[Any] = []
        """What has come while the link is stalled."""
        self._clear_at = 0.0
        """When the last that was sent to this end arrives."""
        self.unread = 0
        """Bytes that were sent to this end, and that its process has not read; not of Redis."""
        self._slow_until = 0.0
        self._interval = 0.0
        """Seconds between two pieces that a slow process reads; 0: it reads nothing."""
        self.on_room: Callable[[], object] | None = None
        """Is called when the other process has read something."""

    # slow readers

    @property
    def backlog(self) -> int:
        """Bytes that were written and have not left."""
        return max(0, self.peer.unread - KERNEL)

    def read_slowly(self, seconds: float, interval: float) -> None:
        """Read one piece in each interval for a while, or nothing with an interval of 0."""
        self._slow_until = max(self._slow_until, self.link.world.now + seconds)
        self._interval = interval

    # writing

    def write(self, data: Any) -> None:
        """Send to the other end."""
        link = self.link
        if self.ended or not data:
            return
        if not link.is_bytes and type(data) is bytes:
            self.peer.unread += len(data)
        if link.is_deaf:
            return
        world = link.world
        chance = world.random
        if link.is_bytes and len(data) > 1 and chance.random() < SPLIT:
            middle = chance.randrange(1, len(data))
            self._send(world, data[:middle])
            data = data[middle:]
        self._send(world, data)

    def _send(self, world: World, data: Any) -> None:
        peer = self.peer
        delay = world.random.random() * 2 * DELAY
        if world.random.random() < SLOW:
            delay *= 100
        arrival = max(peer._clear_at, world.now + delay)
        peer._clear_at = arrival
        world.at(arrival, peer._arrive, data)

    def _arrive(self, data: Any) -> None:
        link = self.link
        if self.ended or link.is_deaf or not self.process.alive:
            return
        now = link.world.now
        if self._held or link.stalled_until > now or self._slow_until > now:
            if not self._held:
                link.world.at(self._reads_at(), self._release)
            self._held.append(data)
            return
        self._take(data)

    def _reads_at(self) -> float:
        """Return when the process reads the next piece, while something holds it."""
        now, stalled_until = self.link.world.now, self.link.stalled_until
        if stalled_until > now:
            return stalled_until
        return min(self._slow_until, now + self._interval) if self._interval else self._slow_until

    def _release(self) -> None:
        world = self.link.world
        if self.link.stalled_until > world.now:
            world.at(self.link.stalled_until, self._release)
            return
        if self._slow_until > world.now:
            if self._interval:
                self._take(self._held.pop(0))
            if self._held:
                world.at(self._reads_at(), self._release)
            return
        held, self._held = self._held, []
        for data in held:
            self._take(data)

    def _take(self, data: Any) -> None:
        if self.ended or self.link.is_deaf or not self.process.alive:
            return
        if data is _END or isinstance(data, Exception):
            self.process.call(self._lose, None if data is _END else data)
            return
        self._arrived.append(data)
        if len(self._arrived) == 1:
            self.process.call(self._read)

    def _read(self) -> None:
        arrived, self._arrived = self._arrived, []
        if self.ended or not arrived:
            return
        if self.link.is_bytes:
            self.receiver.data_received(b"".join(arrived))
            return
        for data in arrived:
            if type(data) is bytes:
                self.unread -= len(data)
        if (on_room := self.peer.on_room) is not None and not self.peer.ended:
            self.peer.process.call(on_room)
        self.receiver.data_received(arrived)

    def _lose(self, error: Exception | None) -> None:
        if self.ended:
            return
        self.ended = True
        self.link.network.ends.pop(self, None)
        self.receiver.connection_lost(error)

    def close(self) -> None:
        """End after what was written has arrived."""
        self._end(_END)

    def abort(self) -> None:
        """End at once."""
        self._end(ConnectionResetError("reset by peer"))

    def is_closing(self) -> bool:
        return self.ended

    def _end(self, how: Any) -> None:
        if self.ended:
            return
        if not self.link.is_deaf:
            self._send(self.link.world, how)
        self.ended = True
        self.link.network.ends.pop(self, None)
        self.process.call(self.receiver.connection_lost, None)

    def vanish(self) -> None:
        """End with its process: nobody is told here."""
        if self.ended:
            return
        self.ended = True
        self.link.network.ends.pop(self, None)
        if not self.link.is_deaf:
            self._send(self.link.world, ConnectionResetError("reset by peer"))


_END = object()


class Link:
    """See the module."""

    def __init__(self, network: Network, *, is_bytes: bool) -> None:
        self.network = network
        self.world = network.world
        self.is_bytes = is_bytes
        self.stalled_until = 0.0
        self.is_deaf = False
        self.ends: tuple[End, End]

    def stall(self, seconds: float) -> None:
        self.stalled_until = max(self.stalled_until, self.world.now + seconds)

    def deafen(self) -> None:
        self.is_deaf = True
        if not self.is_bytes:
            self.world.after(PING_TIMEOUT, self._time_out)

    def _time_out(self) -> None:
        for end in self.ends:
            if not end.ended and end.process.alive:
                end.process.call(end._lose, ConnectionResetError("no pong"))

    def cut(self) -> None:
        """End for both processes, each of which learns it by itself."""
        for end in self.ends:
            if not end.ended:
                end._send(self.world, ConnectionResetError("cut"))


class Network:
    """Where processes listen, and the links between them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._listening: dict[Place, tuple[Process, Callable[[], Receiver], bool]] = {}
        self.ends: dict[End, None] = {}
        """Those that are open."""
        self.is_down = False
        """Whether nobody gets a connection any more."""
        self._unreachable: dict[tuple[Process, Process], float] = {}
        """Until when a process gets no connection to another one."""

    def add(self, process: Process) -> None:
        """Let a process open connections, and take its own ones away when it dies."""
        process.loop.open_connection = self.open
        process.on_death.append(lambda: self._died(process))

    def _died(self, process: Process) -> None:
        for place, (owner, _, _) in list(self._listening.items()):
            if owner is process:
                del self._listening[place]
        for end in [end for end in self.ends if end.process is process]:
            end.vanish()

    def listen(
        self, process: Process, place: Place, accept: Callable[[], Receiver], *, is_bytes: bool
    ) -> None:
        """Accept connections at a place."""
        self._listening[place] = process, accept, is_bytes

    def links(self, process: Process | None = None, other: Process | None = None) -> list[Link]:
        """Return the open links, or those of a process, or those between two."""
        found: dict[Link, None] = {}
        for end in self.ends:
            if process in (None, end.process) and other in (None, end.peer.process):
                found[end.link] = None
        return list(found)

    def separate(self, one: Process, other: Process, seconds: float, how: str) -> None:
        """Let two processes reach each other no more for a while.

        Args:
            how: what becomes of their links: "stall", "deafen" or "cut".
        """
        self._unreachable[one, other] = self.world.now + seconds
        for link in self.links(one, other):
            if how == "stall":
                link.stall(seconds)
            elif how == "deafen":
                link.deafen()
            else:
                link.cut()

    async def open(
        self, process: Process, factory: Callable[[], Receiver], place: Place
    ) -> tuple[Any, Any]:
        """Open a connection to a place; as `loop.create_connection`."""
        world = self.world
        if self.is_down:
            raise ConnectionRefusedError("the network is down")
        await asyncio.sleep(world.random.random() * 4 * DELAY)
        found = self._listening.get(place)
        if found is None or not found[0].alive:
            raise ConnectionRefusedError(f"nobody listens at {place}")
        server, accept, is_bytes = found
        if self._unreachable.get((process, server), 0.0) > world.now:
            await process.loop.create_future()  # no answer; the caller waits as long as it likes
        link = Link(self, is_bytes=is_bytes)
        here, there = End(link, process, factory()), End(link, server, accept())
        here.peer, there.peer = there, here
        link.ends = here, there
        self.ends[here] = self.ends[there] = None
        server.call(there.receiver.connection_made, there)
        here.receiver.connection_made(here)
        return here, here.receiver
