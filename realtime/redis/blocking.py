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
from collections.abc import Callable, Hashable, Iterable, Sequence
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
from realtime.redis.commands import Argument, Command, Reply, Request, Script, ScriptCall, Wait
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

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class BlockingRedis:
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

    def execute(self, *args: Argument) -> Reply:
        """Send a command and return its reply.

        Raises:
            EngineUnavailable: Redis is away or refused, or there is an error anywhere in the reply.
            NoReply: none came in time; the command may have taken effect.
        """
        return self._checked(self._exchange([args])[0])

    def execute_asking(self, *args: Argument) -> Reply:
        """As `execute`, at the server of a cluster to which the slot of the command is moving."""
        return self._checked(self._exchange([(b"ASKING",), args])[1])

    def run(self, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument]) -> R:
        """Run a script and return its reply. Errors as with `execute`.

        Args:
            script: sent by its digest; by its text where Redis does not know it yet.
            keys: the keys that the script names KEYS.
            arguments: what the script names ARGV.
        """
        result: R
        try:
            result = self.execute(*script.by_digest(keys, arguments))
        except NoScript:
            result = self.execute(*script.by_text(keys, arguments))
        return result

    def run_confirmed(
        self, script: Script[R], keys: Sequence[Argument], arguments: Sequence[Argument], wait: Wait
    ) -> R:
        """Run a script, wait until replicas have what it wrote, and return its reply.

        Raises:
            EngineUnavailable, NoReply: as with `execute`.
            TooFewReplicas: a NoReply; Redis ran the script, and may lose what it wrote.
        """
        reply, confirmed = self._exchange([script.by_digest(keys, arguments), wait.command()])
        if isinstance(reply, NoScriptError):
            reply, confirmed = self._exchange([script.by_text(keys, arguments), wait.command()])
        result: R = self._checked(reply)
        if (error := shortage(wait, self._host, confirmed)) is not None:
            raise error
        return result

    def run_many(
        self, requests: Iterable[Request], wait: Wait | None = None
    ) -> list[Reply | EngineUnavailable]:
        """Make requests in this order in one round trip; others' commands may come in between.

        Args:
            requests: what to do.
            wait: wait until replicas have all of it.

        Returns:
            The reply to each request, or the exception that `execute` would raise for it; or a
            TooFewReplicas, a NoReply: Redis made the request, and may lose what it wrote.

        Raises:
            EngineUnavailable: Redis is away; nothing was sent.
            NoReply: replies are missing; the requests may have taken effect.
        """
        known: set[str] = set()
        commands = [_command(request, known) for request in requests]
        if not commands:
            return []
        error_of_all = None
        if wait is None:
            replies = self._exchange(commands)
        else:
            *replies, confirmed = self._exchange([*commands, wait.command()])
            error_of_all = shortage(wait, self._host, confirmed)
        results = self._each_checked(replies)
        if error_of_all is None:
            return results
        return [
            result if isinstance(result, EngineUnavailable) else error_of_all for result in results
        ]

    def read_many(self, calls: Sequence[ScriptCall[R]]) -> list[R | EngineUnavailable]:
        """Run scripts that only read, in one round trip, and without their texts.

        A second one is for those that Redis does not know yet: they have no order.

        Returns, Raises:
            as `run_many`.
        """
        if not calls:
            return []
        commands = [script.by_digest(keys, arguments) for script, keys, arguments in calls]
        results = self._each_checked(self._exchange(commands))
        unknown = [index for index, result in enumerate(results) if isinstance(result, NoScript)]
        again = self.run_many([calls[index] for index in unknown])
        for index, result in zip(unknown, again, strict=True):
            results[index] = result
        return results

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
        for kind, code in _REDIRECTS.items():
            if type(error) is kind:
                redirected = Redirected.of(self._host, f"{code} {error}")
                if redirected is not None:
                    return redirected
        unavailable = self._host.unavailable(error)
        if isinstance(error, NoScriptError):
            return NoScript(str(unavailable))
        if isinstance(error, _ELSEWHERE) or master_is_elsewhere(str(error)):
            self._replace(self._pool)
        return unavailable


def in_groups(
    keys: Sequence[K], send: Callable[[K, Sequence[int]], list[R | EngineUnavailable]]
) -> list[R | EngineUnavailable]:
    """Send requests group by group.

    Args:
        keys: the group of each request, such as its server.
        send: called with each group and the indexes of its requests; returns their results. What
            it raises is the result of each.

    Returns:
        The results of all requests.
    """
    groups: dict[K, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    results: dict[int, R | EngineUnavailable] = {}
    for key, group in groups.items():
        try:
            replies = send(key, group)
        except EngineUnavailable as error:
            replies = [error] * len(group)
        results.update(zip(group, replies, strict=True))
    return [results[index] for index in range(len(keys))]


def _read(connection: AbstractConnection) -> Reply:
    try:
        # the next replies of a batch can still be read; who calls closes what is left unread
        return connection.read_response(disconnect_on_error=False)
    except (redis.ResponseError, BusyLoadingError) as error:
        return error


def _command(request: Request, known: set[str]) -> Command:
    """Return the command of a request. Scripts not `known` on this connection bring their text."""
    if not isinstance(request, ScriptCall):
        return request
    script, keys, arguments = request
    if script.sha in known:
        return script.by_digest(keys, arguments)
    known.add(script.sha)
    return script.by_text(keys, arguments)


def _first_error(reply: Reply) -> Exception | None:
    """Return the first error in a reply, however deep."""
    if isinstance(reply, Exception):
        return reply
    if isinstance(reply, list):
        for item in reply:
            if (error := _first_error(item)) is not None:
                return error
    return None
