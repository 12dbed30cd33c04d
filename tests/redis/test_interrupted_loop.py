"""As `test_interrupted`, on an event loop: an exception at any line takes no reply from another.

A signal handler raises in a callback of the loop, which goes on; or Ctrl-C ends a run of the loop,
and the next run goes on with the same connections.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import Protocol

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis.commands import Script, ScriptCall, Wait
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub import PubSub
from tests.redis.interruption import OURS, TimeLimitReached, interrupt, lines_of
from tests.redis_server import RedisServer
from tests.server import wait_until

TIMEOUTS = Timeouts(connect=5.0, answer=0.5)
ECHO = Script.of("echo", "return ARGV[1]")
FAILURES = (EngineUnavailable, TimeLimitReached)


class User(Protocol):
    """Uses one kind of connection on one loop."""

    async def use(self) -> bool:
        """Use it, and check what Redis answers; False when it was not available."""
        ...

    async def close(self) -> None: ...


class Commander:
    """Sends commands."""

    def __init__(self, server: RedisServer) -> None:
        self._connection = Connection(Host({"address": server.url}), TIMEOUTS)
        self._numbers = count()

    async def use(self) -> bool:
        asked = [next(self._numbers) for _ in range(3)]
        replies = await asyncio.gather(*map(self._ask, asked), return_exceptions=True)
        for number, reply in zip(asked, replies, strict=True):
            assert reply == b"%d" % number or isinstance(reply, FAILURES)
        return not any(isinstance(reply, FAILURES) for reply in replies)

    async def _ask(self, number: int) -> object:
        return await self._connection.execute("ECHO", number)

    async def close(self) -> None:
        await self._connection.close()


class Confirmer(Commander):
    """Runs scripts and waits for replicas; there is none, and none is asked for."""

    async def _ask(self, number: int) -> object:
        return await self._connection.call(ScriptCall(ECHO, (), (number,)), Wait(0, 10))


class Listener:
    """Subscribes to names."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._names = count()
        self._lost = 0
        self._subscriptions = PubSub(
            Host({"address": server.url}),
            TIMEOUTS,
            on_message=lambda name, data: None,
            on_lost=self._on_lost,
            on_restored=lambda: None,
        )

    def _on_lost(self) -> None:
        self._lost += 1

    async def use(self) -> bool:
        lost = self._lost
        names = [f"name{next(self._names)}" for _ in range(3)]
        replies = await asyncio.gather(
            *map(self._subscriptions.subscribe, names), return_exceptions=True
        )
        subscribed = {name for name, reply in zip(names, replies, strict=True) if reply is None}
        assert subscribed <= self._server.pubsub_channels() or self._lost > lost
        for name in names:
            self._subscriptions.unsubscribe(name)
        return len(subscribed) == len(names)

    async def close(self) -> None:
        await self._subscriptions.close()


@pytest.mark.filterwarnings(
    # what a call was about to await when it was interrupted
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:coroutine .* was never awaited:RuntimeWarning",
)
@pytest.mark.parametrize("error", [TimeLimitReached, KeyboardInterrupt])
@pytest.mark.parametrize("user_class", [Commander, Confirmer, Listener])
def test_loop_may_be_interrupted_at_any_line(
    redis_server: RedisServer,
    user_class: type[Commander | Listener],
    error: type[BaseException],
) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.set_exception_handler(lambda loop, context: None)

        def use(user: User) -> bool:
            try:
                return loop.run_until_complete(asyncio.wait_for(user.use(), 0.2))
            except (error, TimeoutError):
                return False

        def ready() -> User:
            user = user_class(redis_server)
            wait_until(lambda: use(user))
            return user

        user = ready()
        lines = lines_of(lambda: use(user), OURS)
        loop.run_until_complete(user.close())
        assert len(lines) > 20
        for line in lines:
            user = ready()
            interrupt(line, partial(use, user), error)
            # the first may fail with the connection that is given up
            assert use(user) or use(user) or "no reply is better than a wrong one"
            loop.run_until_complete(user.close())
