"""Processes without an event loop: they publish with blocking calls, as Celery and WSGI do.

Each call runs in a greenlet of the simulation: where a socket would block, the greenlet waits for
the world, which goes on meanwhile. So redis-py and `realtime.redis.blocking` run as they are.

    call ─► BlockingRedis ─► redis-py ─► SimulatedSocket ══ bytes ══► RedisServer
              recv: the greenlet waits ◄── data, the end, or the time-out
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from queue import Empty
from typing import TYPE_CHECKING, Any
from unittest import mock

import redis.connection
from redis._parsers import hiredis as parser

from realtime.cluster.member import Member, NewPublication
from realtime.engine.once import Once
from realtime.errors import EngineUnavailable
from realtime.payload import check
from realtime.serving import run_by_hand
from tests.simulation.greenlets import current, sleep, suspend, wait
from tests.simulation.network import End
from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

RETRIES = 20
ONCE_SECONDS = 3600


class ThreadProcess:
    """A process that publishes from threads."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name
        self.process: Process
        self.start()

    def start(self) -> None:
        """Begin, with connections of its own."""
        self.process = Process(self.service.world, self.name)
        self.service.network.add(self.process)
        self.member = Member(self.service.config, self.service.new_store())

    def publish(self, channel: str, *, insists: bool) -> None:
        """Publish in a thread.

        Args:
            insists: with an idempotency key, again and again until it is acknowledged.
        """
        if self.process.alive:
            self.process.begin_thread(lambda: self._publish(channel, insists))

    def _publish(self, channel: str, insists: bool) -> None:
        judge = self.service.judge
        publishing = judge.begin(channel)
        once = Once(f"key {publishing.number}", ONCE_SECONDS) if insists else None
        new = NewPublication(channel, check(b"%d" % publishing.number), once=once)
        options = self.service.options_of(channel)
        for attempt in range(RETRIES if insists else 1):
            publishing.is_repeated = attempt > 0
            try:
                published = run_by_hand(self.member.publish_new(new, options))
            except EngineUnavailable as error:
                judge.miss_engine(self.name, f"{publishing.number}: {error}")
                sleep(self.process, 0.2 * (attempt + 1))
                continue
            position = published.position
            if position is None:
                judge.acknowledge(publishing)
            else:
                judge.acknowledge(publishing, position.offset, position.epoch)
            return


def _process() -> Process:
    return current(_worlds[-1])


_worlds: list[Any] = []


class SimulatedSocket:
    """A socket of a greenlet, as redis-py uses one."""

    def __init__(self, process: Process, timeout: float | None) -> None:
        self._process = process
        self._timeout = timeout
        self._end: End | None = None
        self._data = bytearray()
        self._is_over = False
        self._error: Exception | None = None
        self._wake: Callable[[], None] | None = None

    def connect(self, network: Any, place: tuple[Any, ...]) -> None:
        """Open the connection, or raise OSError."""
        process = self._process
        wake = wait(process, self._timeout)
        opened: list[Any] = []

        async def open_() -> None:
            try:
                opened.append((await network.open(process, lambda: self, place))[0])
            except OSError as error:
                opened.append(error)
            wake()

        task = process.spawn(open_())
        suspend()
        if not opened:
            task.cancel()
            raise TimeoutError("timed out")
        if isinstance(opened[0], OSError):
            raise opened[0]

    # from the network

    def connection_made(self, transport: End) -> None:
        self._end = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        self._notify()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over, self._error = True, error
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake()

    # as a socket

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        self._timeout = None if flag else 0

    def setsockopt(self, *arguments: Any) -> None:
        pass

    def getpeername(self) -> tuple[str, int]:
        return "simulated", 0

    def fileno(self) -> int:
        return -1

    @property
    def is_closed(self) -> bool:
        return self._is_over

    @property
    def is_readable(self) -> bool:
        return self._is_over or bool(self._data)

    def sendall(self, data: bytes) -> None:
        if self._is_over or self._end is None:
            raise ConnectionResetError("reset by peer")
        self._end.write(bytes(data))

    def recv(self, size: int) -> bytes:
        if not self._data and not self._is_over:
            if self._timeout == 0:
                raise BlockingIOError
            self._wake = wait(self._process, self._timeout)
            suspend()
            self._wake = None
        if self._data:
            data = bytes(self._data[:size])
            del self._data[:size]
            return data
        if not self._is_over:
            raise TimeoutError("timed out")
        if self._error is not None:
            raise ConnectionResetError(str(self._error))
        return b""

    def recv_into(self, buffer: Any, size: int = 0) -> int:
        data = self.recv(size or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        if self._end is not None:
            self._end.abort()


class SimulatedQueue:
    """Takes the place of `queue.SimpleQueue`: a greenlet waits, and the world goes on."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._waiting: list[Callable[[], None]] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        if self._waiting:
            self._waiting.pop(0)()

    def get(self, block: bool, timeout: float) -> Any:
        process = _process()
        deadline = process.loop.time() + timeout
        while not self._items:
            left = deadline - process.loop.time()
            if left <= 0:
                raise Empty
            wake = wait(process, left)
            self._waiting.append(wake)
            suspend()
            if wake in self._waiting:
                self._waiting.remove(wake)
        return self._items.pop()


def _sleep(seconds: float) -> None:
    sleep(_process(), seconds)


@contextlib.contextmanager
def blocking_calls(service: Service) -> Iterator[None]:
    """Let redis-py connect to the simulated network within this block."""

    def connect(connection: Any) -> SimulatedSocket:
        socket = SimulatedSocket(_process(), connection.socket_connect_timeout)
        socket.connect(service.network, (connection.host, connection.port))
        socket.settimeout(connection.socket_timeout)
        return socket

    _worlds.append(service.world)
    try:
        with (
            mock.patch.object(redis.connection.Connection, "_connect", connect),
            mock.patch("realtime.redis.pool.SimpleQueue", SimulatedQueue),
            mock.patch(
                "realtime.redis.blocking_cluster.time.sleep", lambda s: sleep(_process(), s)
            ),
            mock.patch.object(parser, "_socket_can_read", lambda socket, _: socket.is_readable),
            mock.patch.object(parser, "_socket_is_closed", lambda socket: socket.is_closed),
            # each connection asks for it: a file, read and parsed
            mock.patch.object(redis.utils, "get_lib_version", return_value=redis.__version__),
        ):
            yield
    finally:
        _worlds.pop()
