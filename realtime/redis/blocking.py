"""BlockingRedis: commands of threads that have no event loop.

For WSGI workers, task queues and shells: no event loop and no thread is made for a command.
Connections are redis-py's, `pool` keeps them.

A signal handler may raise an exception between any two lines: for the time limit of a task, or to
shut down. So a connection is kept only after the last reply was read, and closed otherwise: the
reply that it still owes would be taken for that of the next command. And the pool is
replaced: where the exception came between pool and borrower, a place of the pool is lost. A forked
process gets a pool of its own, too.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeVar

import redis
from redis.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    MasterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    TryAgainError,
)

from realtime.errors import EngineUnavailable
from realtime.redis.commands import (
    Argument,
    BlockingCalls,
    Command,
    Reply,
    Request,
    ScriptCall,
    Wait,
    in_full,
)
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import NoScript, master_is_elsewhere
from realtime.redis.master import MASTER_CHECK_INTERVAL
from realtime.redis.pool import CANNOT_OPEN, BlockingPool, connection_of, find_master
from realtime.redis.redirects import Redirected
from realtime.redis.replicas import shortage

MASTER_CHECK_SHARE = 20
"""After a question that took 0.1 s, the next one comes 2 s later: 20 times as long."""
MASTER_RECHECK_DELAY = 30.0
"""Seconds until the Sentinels are asked again when none of them answered: a call waits for them."""

MAX_CONNECTIONS = 50
"""Threads that can use one Redis at a time; further ones wait for a connection."""

_ELSEWHERE = (ReadOnlyError, BusyLoadingError, MasterDownError)
"""What redis-py makes of `link.MASTER_ELSEWHERE`, unless a script wraps it."""

_REDIRECTS: dict[type[Exception], str] = {
    MovedError: "MOVED",
    AskError: "ASK",
    TryAgainError: "TRYAGAIN",
}
"""What redis-py makes of `redirects.CODES`."""

R = TypeVar("R")


class BlockingRedis(BlockingCalls):
    """A client for any number of threads; opens connections when they are needed.

    A command takes at most the time to get a connection, to open it, and to get a reply.
    """

    def __init__(
        self, host: Host, timeouts: Timeouts, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self._host = host
        self._timeouts = timeouts
        self._max_connections = max_connections
        self._pool = self._new_pool()
        self._master: tuple[str, int] | None = None
        """The place of the master when the Sentinels were last asked."""
        self._check_at = 0.0
        """Monotonic seconds from which they are asked again."""

    def _new_pool(self) -> BlockingPool:
        kind, options = connection_of(self._host, self._timeouts)
        return BlockingPool(partial(kind, **options), self._max_connections, self._timeouts.connect)

    def call(self, request: Request, wait: Wait | None = None) -> Reply:
        try:
            return self._confirmed(_by_digest(request), wait)
        except NoScript:  # not known yet
            text = in_full(request)
        return self._confirmed(text, wait)

    def _confirmed(self, command: Command, wait: Wait | None) -> Reply:
        if wait is None:
            return self._checked(self._exchange([command])[0])
        reply, confirmed = self._exchange([command, wait.command()])
        self._checked(reply)
        if (error := shortage(wait, self._host, confirmed)) is not None:
            raise error
        return reply

    def execute_asking(self, *args: Argument) -> Reply:
        """As `execute`, at the server of a cluster to which the slot of the command is moving."""
        return self._checked(self._exchange([(b"ASKING",), args])[1])

    def run_many(
        self, requests: Sequence[Request], waits: Sequence[Wait | None] = ()
    ) -> list[Reply | EngineUnavailable]:
        """Make requests in this order in one round trip; others' commands may come in between.

        Args:
            requests: what to do.
            waits: for replicas, of each request; all wait for the longest. None: no request waits.

        Returns:
            The reply to each request, or the exception that `execute` would raise for it; or a
            TooFewReplicas, a NoReply: Redis made the request, and may lose what it wrote.

        Raises:
            EngineUnavailable: Redis is away; nothing was sent.
            NoReply: replies are missing; the requests may have taken effect.
        """
        known: set[str] = set()
        commands = [_command(request, known) for request in requests]
        wait = max(filter(None, waits), default=None)
        if wait is None:
            return self._each_checked(self._exchange(commands)) if commands else []
        *replies, confirmed = self._exchange([*commands, wait.command()])
        results = self._each_checked(replies)
        if (error := shortage(wait, self._host, confirmed)) is not None:
            for index, result in enumerate(results):
                if waits[index] is not None and not isinstance(result, EngineUnavailable):
                    results[index] = error
        return results

    def read_many(self, calls: Sequence[Request]) -> list[Reply | EngineUnavailable]:
        """Run scripts that only read, in one round trip, and without their texts.

        A second one is for those that Redis does not know yet: they have no order.

        Returns, Raises:
            as `run_many`.
        """
        if not calls:
            return []
        results = self._each_checked(self._exchange([_by_digest(call) for call in calls]))
        unknown = [index for index, result in enumerate(results) if isinstance(result, NoScript)]
        again = self.run_many([calls[index] for index in unknown])
        for index, result in zip(unknown, again, strict=True):
            results[index] = result
        return results

    def server(self, away: EngineUnavailable | None = None) -> BlockingRedis:
        """Return the client itself; see `blocking_cluster.BlockingRoute.server`."""
        return self

    def close(self) -> None:
        """Close the connections, also those that are in use; they are opened again when needed."""
        pool = self._pool
        self._replace(pool)
        pool.close()

    def close_idle(self) -> None:
        """Close the connections that no thread uses; they are opened again when needed."""
        self._pool.close_idle()

    def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands together and read a reply for each; errors of Redis are replies.

        Nothing is sent twice, because a repeated publish is published twice.
        """
        if self._host.sentinels and time.monotonic() >= self._check_at:
            self._check_master()
        pool = self._pool
        if pool.pid != os.getpid():
            self._replace(pool)
            pool = self._pool
        try:
            return self._exchange_over(pool, commands)
        except EngineUnavailable:
            raise
        except BaseException:
            # of a signal handler, a greenlet or an interrupt: the place may not be free again
            self._replace(pool)
            raise

    def _exchange_over(self, pool: BlockingPool, commands: Sequence[Command]) -> list[Reply]:
        try:
            connection = pool.get()
        except redis.RedisError as error:
            raise self._unavailable(error) from None
        except CANNOT_OPEN as error:
            self._replace(pool)  # an OSError may be the TimeoutError of a signal handler
            raise self._unavailable(error) from None
        settled = False
        try:
            packed = connection.pack_commands(commands)
            connection.send_packed_command(packed, check_health=False)
            replies = [_read(connection) for _ in commands]
            settled = True
        except (redis.RedisError, OSError) as error:
            # others in the pool may lead to the same server, and each would cost a time-out
            self._replace(pool)
            raise self._host.no_reply(error) from None
        finally:
            (pool.keep if settled else pool.drop)(connection)
        return replies

    def _check_master(self) -> None:
        """Ask where the master is, and leave the connections to another one.

        In a planned failover the old master goes on to accept commands for ten seconds, and drops
        them in the end.
        """
        began = time.monotonic()
        self._check_at = began + MASTER_CHECK_INTERVAL  # other threads do not wait
        try:
            master = find_master(self._host, self._timeouts.connect)
        except redis.ConnectionError:
            self._check_at = time.monotonic() + MASTER_RECHECK_DELAY
            return
        # a Sentinel that does not answer costs its time-out each time
        took = time.monotonic() - began
        pause = max(MASTER_CHECK_INTERVAL, min(took * MASTER_CHECK_SHARE, MASTER_RECHECK_DELAY))
        self._check_at = began + took + pause
        if self._master not in (None, master):
            self._replace(self._pool)
        self._master = master

    def _replace(self, pool: BlockingPool) -> None:
        """Let later commands open connections anew: with Sentinel, to the master of that moment.

        Threads that use the pool go on with it until they have their replies.
        """
        if self._pool is pool:  # the first of several threads has replaced it
            self._pool = self._new_pool()

    def _checked(self, reply: Reply) -> Reply:
        if (error := _first_error(reply)) is not None:
            raise self._unavailable(error)
        return reply

    def _each_checked(self, replies: Iterable[Reply]) -> list[Reply | EngineUnavailable]:
        """Return replies, with the exceptions of those that are errors."""
        results = []
        for reply in replies:
            try:
                results.append(self._checked(reply))
            except EngineUnavailable as error:
                results.append(error)
        return results

    def _unavailable(self, error: Exception) -> EngineUnavailable:
        code = _REDIRECTS.get(type(error), "")
        if (redirected := Redirected.of(self._host, f"{code} {error}")) is not None:
            return redirected
        unavailable = self._host.unavailable(error)
        if isinstance(error, NoScriptError):
            return NoScript(str(unavailable))
        if isinstance(error, _ELSEWHERE) or master_is_elsewhere(str(error)):
            self._replace(self._pool)
        return unavailable


def _read(connection: AbstractConnection) -> Reply:
    try:
        # the next replies of a batch can still be read; who calls closes what is left unread
        return connection.read_response(disconnect_on_error=False)
    except (redis.ResponseError, BusyLoadingError) as error:
        return error


def _by_digest(request: Request) -> Command:
    if isinstance(request, ScriptCall):
        return request.script.by_digest(request.keys, request.arguments)
    return request


def _command(request: Request, known: set[str]) -> Command:
    """Return the command of a request. Scripts not `known` on this connection bring their text."""
    if not isinstance(request, ScriptCall) or request.script.sha in known:
        return _by_digest(request)
    known.add(request.script.sha)
    return in_full(request)


def _first_error(reply: Reply) -> Exception | None:
    """Return the first error in a reply, however deep."""
    if isinstance(reply, Exception):
        return reply
    if isinstance(reply, list):
        for item in reply:
            if (error := _first_error(item)) is not None:
                return error
    return None
