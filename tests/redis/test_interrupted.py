"""A connection on which a reply was not read is never used again, wherever a call was left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from realtime.errors import EngineUnavailable
from realtime.redis import blocking, pool
from realtime.redis.blocking import BlockingRedis
from realtime.redis.hosts import Host, Timeouts
from tests.redis.interruption import WITH_REDIS_PY, Line, TimeLimitReached, interrupt, lines_of
from tests.redis.scripted_server import OK, ScriptedServer, array
from tests.server import wait_until

SOON = Timeouts(connect=5.0, answer=0.02)
"""For commands that are never answered."""

Scripting = Callable[..., Awaitable[ScriptedServer]]
Ask = Callable[[BlockingRedis], object]

ONE_PLACE, SENTINEL = "one place", "sentinel"

ASK: dict[str, Ask] = {
    "command": lambda client: client.execute("ECHO", "late"),
    "batch": lambda client: client.run_many([("ECHO", "0"), ("ECHO", "late")]),
}


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(data), data)


class LateAnswers:
    """Answers "late" not at once but in front of the next answer on the same connection.

    As a Sentinel it says that the master is in the same place.
    """

    server: ScriptedServer

    def __init__(self) -> None:
        self._late: set[int] = set()

    def __call__(self, command: list[bytes]) -> bytes:
        asker = self.server.askers[-1]
        if command[0] == b"SENTINEL":
            host, port = self.server.place
            return array(host.encode(), b"%d" % port)
        if command == [b"ECHO", b"late"]:
            self._late.add(asker)
            return b""
        if command[0] == b"ECHO":
            owed = bulk(b"late") if asker in self._late else b""
            self._late.discard(asker)
            return owed + bulk(command[1])
        return OK


@pytest.fixture
async def late_server(script_server: Scripting) -> ScriptedServer:
    answers = LateAnswers()
    answers.server = await script_server(answers)
    return answers.server


def reached(over: str, server: ScriptedServer) -> dict[str, Any]:
    """How the server is reached."""
    if over == SENTINEL:
        return {"sentinels": [server.place], "master_name": "m"}
    return {"address": server.url}


def replies_of_their_own(client: BlockingRedis) -> bool:
    """Whether commands get replies; no command may get that of another."""
    for number in range(3):
        try:
            assert client.execute("ECHO", f"{number}") == b"%d" % number
            assert client.run_many([("ECHO", f"{number}.")]) == [b"%d." % number]
        except EngineUnavailable:  # a busy machine may need longer
            return False
    return True


@pytest.mark.parametrize("over", [ONE_PLACE, SENTINEL])
@pytest.mark.parametrize("ask", ASK.values(), ids=ASK.keys())
async def test_late_reply_is_not_taken_for_that_of_the_next_command(
    late_server: ScriptedServer, open_blocking: Callable[..., BlockingRedis], over: str, ask: Ask
) -> None:
    client = open_blocking(reached(over, late_server), SOON)
    with pytest.raises(EngineUnavailable):
        await asyncio.to_thread(ask, client)
    await asyncio.to_thread(wait_until, partial(replies_of_their_own, client))


def answered(client: BlockingRedis) -> object:
    return client.run_many([("ECHO", "0")])


every_line = partial(lines_of, places=WITH_REDIS_PY)


def interrupt_everywhere(
    entry: dict[str, Any],
    open_first: bool,
    call: Ask = ASK["batch"],
    lines_of: Callable[..., list[Line]] = every_line,
    error: type[BaseException] = TimeLimitReached,
) -> int:
    """Interrupt calls, each at another line; return how many lines there are.

    Signal handlers raise exceptions anywhere: task queues for time limits, servers to shut down.
    The pool has one place, which is lost if a call leaves it in use.
    """

    def ready() -> BlockingRedis:
        client = BlockingRedis(Host(entry), SOON, max_connections=1)
        if open_first:
            wait_until(partial(replies_of_their_own, client))
        return client

    client = ready()
    lines = lines_of(lambda: call(client))
    client.close()
    for line in lines:
        client = ready()
        interrupt(line, partial(call, client), error)
        wait_until(partial(replies_of_their_own, client))
        client.close()
    return len(lines)


@pytest.mark.filterwarnings(
    # a socket whose opening was interrupted inside redis-py is left to the garbage collector
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize(
    ("over", "open_first"),
    [
        pytest.param(ONE_PLACE, True, id="open"),
        pytest.param(ONE_PLACE, False, id="opening"),
        pytest.param(SENTINEL, False, id="opening-by-sentinel"),
    ],
)
async def test_blocking_call_may_be_interrupted_at_any_line(
    late_server: ScriptedServer, over: str, open_first: bool
) -> None:
    entry = reached(over, late_server)
    lines = await asyncio.to_thread(interrupt_everywhere, entry, open_first)
    assert lines > 50


POOLING = (blocking.__file__, pool.__file__)
"""Files in which a place of the pool changes hands. In redis-py, lines are enough."""


@pytest.mark.parametrize("error", [TimeLimitReached, KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("open_first", [True, False], ids=["open", "opening"])
async def test_blocking_call_may_be_interrupted_at_any_instruction(
    late_server: ScriptedServer, open_first: bool, error: type[BaseException]
) -> None:
    entry = reached(ONE_PLACE, late_server)
    instructions_of = partial(lines_of, places=POOLING, instructions=True)

    instructions = await asyncio.to_thread(
        interrupt_everywhere, entry, open_first, answered, instructions_of, error
    )

    assert instructions > 200
