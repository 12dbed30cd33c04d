"""BlockingRedis: commands of threads that have no event loop.

For WSGI workers, task queues and shells: no event loop and no thread is made for a command.
The pool is redis-py's: it replaces connections that Redis closed while they were idle, and
those that a forked process inherited.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Iterable, Sequence

import redis
from redis.exceptions import BusyLoadingError, MasterDownError, NoScriptError, ReadOnlyError

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.link import Argument, NoScript, Reply, master_is_elsewhere
from realtime.redis.script import Script

MAX_CONNECTIONS = 50
"""Threads that can talk to one Redis at once; more wait for one of them."""

_ELSEWHERE = (ReadOnlyError, BusyLoadingError, MasterDownError)
"""What redis-py makes of `link.MASTER_ELSEWHERE`, unless a script wraps it."""

Command = tuple[Argument, ...]
Call = tuple[Script | None, Sequence[Argument], Sequence[Argument]]
Step = Command | Call
"""A script with keys and arguments, or a command: bare, or in the place of the arguments."""


class BlockingRedis:
    """A client for any number of threads; opens connections when they are needed.

    A command takes at most the time to get a connection, to open it and to be answered.
    """

    def __init__(
        self, host: Host, timeouts: Timeouts, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self._host = host
        self._timeouts = timeouts
        self._max_connections = max_connections
        self._client = host.blocking(timeouts, max_connections)

    def execute(self, *args: Argument) -> Reply:
        """Send a command and wait for its reply.

        Raises:
            EngineUnavailable: Redis is away, too slow, or refused; with an error anywhere in
                the reply, too. If there was no answer, the command may have been done.
        """
        pool = self._client.connection_pool
        try:
            connection = pool.get_connection()
            try:  # as the client does, without its repetitions, callbacks and events
                connection.send_command(*args, check_health=False)
                reply = connection.read_response()
            finally:
                pool.release(connection)
        except (redis.RedisError, OSError) as error:
            raise self._unavailable(error) from None
        return self._checked(reply)

    def run(self, script: Script, keys: Sequence[Argument], args: Sequence[Argument]) -> Reply:
        """Run a script. Errors as with `execute`."""
        call = (len(keys), *keys, *args)
        try:
            return self.execute("EVALSHA", script.sha, *call)
        except NoScript:
            return self.execute("EVAL", script.text, *call)

    def run_many(self, steps: Iterable[Step]) -> list[Reply | EngineUnavailable]:
        """Take steps in this order in one round trip, others' commands in between.

        Gives the reply of each step, or the exception that `execute` would raise for it.

        Raises:
            EngineUnavailable: some answers, or all, did not come; the steps may have been done.
        """
        pipeline = self._client.pipeline(transaction=False)
        known: set[str] = set()
        for step in steps:
            pipeline.execute_command(*_command(step, known))
        try:
            replies = pipeline.execute(raise_on_error=False)
        except (redis.RedisError, OSError) as error:
            raise self._unavailable(error) from None
        results = []
        for reply in replies:
            try:
                results.append(self._checked(reply))
            except EngineUnavailable as error:
                results.append(error)
        return results

    def close(self) -> None:
        """Close the connections, also those that are in use."""
        self._client.connection_pool.disconnect()

    def _checked(self, reply: Reply) -> Reply:
        if (error := _first_error(reply)) is not None:
            raise self._unavailable(error)
        return reply

    def _unavailable(self, error: Exception) -> EngineUnavailable:
        unavailable = self._host.unavailable(error)
        if isinstance(error, NoScriptError):
            return NoScript(str(unavailable))
        if isinstance(error, _ELSEWHERE) or master_is_elsewhere(str(error)):
            # other threads finish with the old pool, which goes when the last of them has
            self._client = self._host.blocking(self._timeouts, self._max_connections)
        return unavailable


def _command(step: Step, known: set[str]) -> Command:
    """The command of a step. Scripts not `known` on this connection come with their text."""
    if isinstance(step[0], Argument):
        return step
    script, keys, args = step
    if script is None:
        return tuple(args)
    call = (len(keys), *keys, *args)
    if script.sha in known:
        return ("EVALSHA", script.sha, *call)
    known.add(script.sha)
    return ("EVAL", script.text, *call)


def _first_error(reply: Reply) -> Exception | None:
    """The first error in a reply, however deep."""
    if isinstance(reply, Exception):
        return reply
    if isinstance(reply, list):
        for item in reply:
            if (error := _first_error(item)) is not None:
                return error
    return None
