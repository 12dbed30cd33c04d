"""The pool of connections of threads: places, order, and what is in a connection that is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import redis
from redis.connection import AbstractConnection

from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pool import BlockingPool, connection_of
from tests.redis_server import RedisServer
from tests.server import wait_until

PLACES = 2


class Opened:
    """A pool, and what it has made."""

    def __init__(self, server: RedisServer, places: int) -> None:
        kind, options = connection_of(Host({"address": server.url}), Timeouts())
        self._make: Callable[[], AbstractConnection] = partial(kind, **options)
        self.made = 0
        self.pool = BlockingPool(self.make, places, timeout=5.0)

    def make(self) -> AbstractConnection:
        self.made += 1
        return self._make()


@pytest.fixture
def opened(redis_server: RedisServer) -> Iterator[Opened]:
    opened = Opened(redis_server, PLACES)
    yield opened
    opened.pool.close()


def ask(connection: AbstractConnection, *command: Any) -> Any:
    connection.send_command(*command)
    return connection.read_response()


def test_connection_that_was_kept_last_is_used_next(opened: Opened) -> None:
    first, second = opened.pool.get(), opened.pool.get()
    opened.pool.keep(first)
    opened.pool.keep(second)

    assert opened.pool.get() is second
    assert opened.pool.get() is first
    assert opened.made == 2


def test_threads_never_have_more_connections_than_places(opened: Opened) -> None:
    def use(number: int) -> bytes:
        connection = opened.pool.get()
        reply: bytes = ask(connection, "ECHO", number)
        opened.pool.keep(connection)
        return reply

    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(use, range(400)))

    assert replies == [b"%d" % number for number in range(400)]
    assert opened.made <= PLACES


def test_connection_with_something_to_read_is_opened_anew(opened: Opened) -> None:
    connection = opened.pool.get()
    connection.send_command("ECHO", "of another")
    assert connection.can_read(timeout=5.0)
    opened.pool.keep(connection)
    assert ask(opened.pool.get(), "ECHO", "own") == b"own"


@pytest.mark.parametrize("error", [redis.RedisError, ValueError, KeyboardInterrupt])
def test_place_is_free_again_where_no_connection_could_be_made(
    opened: Opened, error: type[BaseException]
) -> None:
    def fail() -> AbstractConnection:
        raise error("not now")

    pool = BlockingPool(fail, 1, timeout=0.01)

    for _ in range(2):
        with pytest.raises(error, match="not now"):
            pool.get()


def test_close_closes_also_what_is_in_use(opened: Opened, redis_server: RedisServer) -> None:
    connections = [opened.pool.get() for _ in range(PLACES)]
    ids = {str(ask(connection, "CLIENT", "ID")) for connection in connections}
    opened.pool.keep(connections[0])

    opened.pool.close()

    with redis_server.client() as client:
        wait_until(lambda: not ids & {each["id"] for each in client.client_list()})
