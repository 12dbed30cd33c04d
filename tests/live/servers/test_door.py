"""Who comes while a server drains gets an answer, and at its end a refusal: nobody is cut off."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.chaos.rolling import workers_of
from tests.live.raw_http import UPGRADE
from tests.redis_server import RedisServer
from tests.server import API_KEY, TIMEOUT, Server

OwnRedis = Callable[..., RedisServer]

CLIENTS = 100
"""Of all workers: more than are closed at once."""
DRAIN = 3.0
CALLERS = 3
"""Of each kind, at once."""
PAUSE = 0.05
"""Seconds between two calls of a caller."""

REFUSED = "refused"


class Kind(NamedTuple):
    """One kind of caller."""

    head: str
    answers: Sequence[str]
    """What it gets, at last during the drain."""


def head(line: str, headers: Mapping[str, str], body: str = "") -> str:
    fields = {"Host": "site", "Content-Length": str(len(body)), "Connection": "close", **headers}
    if not body:
        del fields["Content-Length"]
    return "\r\n".join((f"{line} HTTP/1.1", *map(": ".join, fields.items()), "", body))


KEY = {"X-API-Key": API_KEY}
KINDS = {
    "socket": Kind(head("GET /connection/websocket", UPGRADE), ["101 3001"]),
    "api": Kind(head("POST /api/info", KEY, "{}"), ["200"]),
    "ready": Kind(head("GET /realtime/ready", {}), ["200", "503"]),
    # nothing restarts the process
    "live": Kind(head("GET /realtime/live", {}), ["200"]),
    "page": Kind(head("GET /hello", {}), ["200"]),
}


async def call(port: int, text: str) -> str:
    """Come on a connection of one's own. Returns the status, with the code of a close frame."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return REFUSED
    try:
        async with asyncio.timeout(TIMEOUT):
            writer.write(text.encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            if answer == "101":
                _, length = await reader.readexactly(2)
                answer += f" {int.from_bytes((await reader.readexactly(length))[:2])}"
                writer.write(bytes((0x88, 0x80, 0, 0, 0, 0)))
            else:
                await reader.read()  # Django logs requests whose peers do not wait
            return answer
    except (OSError, EOFError) as error:
        return repr(error)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def keep_calling(port: int, kind: Kind, answers: list[str]) -> None:
    """Come again and again until the server is gone; a slow server is called less often."""
    while REFUSED not in answers:
        answers.append(await call(port, kind.head))
        await asyncio.sleep(PAUSE)


async def fill(server: Server, stack: AsyncExitStack) -> None:
    """Open clients that never say anything."""
    for _ in range(CLIENTS):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        stack.callback(writer.close)
        writer.write(KINDS["socket"].head.encode())
        await reader.readuntil(b"\r\n\r\n")


async def all_serve(server: Server, workers: int) -> None:
    async with asyncio.timeout(TIMEOUT):
        while len(workers_of(server)) < workers:
            await asyncio.sleep(PAUSE)


async def judge(server: Server, stop: Callable[[], None]) -> None:
    """Stop a server with clients while callers of each kind come, and look at what each got."""
    answers: dict[str, list[str]] = {name: [] for name in KINDS}
    async with AsyncExitStack() as stack:
        await fill(server, stack)
        async with asyncio.TaskGroup() as group:
            for name, kind in KINDS.items():
                for _ in range(CALLERS):
                    group.create_task(keep_calling(server.port, kind, answers[name]))
            stop()
    assert await asyncio.to_thread(server.wait) == 0
    got = {name: Counter(each) for name, each in answers.items()}
    for name, kind in KINDS.items():
        assert kind.answers[-1] in got[name], got
        assert got[name].keys() <= {*kind.answers, REFUSED}, got
    assert "Traceback" not in server.log


WAYS: Mapping[str, tuple[str, Sequence[str], signal.Signals, bool]] = {
    "daphne": ("daphne", (), signal.SIGTERM, False),
    "one worker": ("realtime", ("--workers", "1"), signal.SIGINT, True),
    "two workers": ("realtime", ("--workers", "2"), signal.SIGTERM, False),
    "two workers, signal to all": ("realtime", ("--workers", "2"), signal.SIGTERM, True),
}
"""Way → the server, its arguments, the signal, and whether the signal is for its whole group."""


@pytest.mark.parametrize("way", WAYS)
async def test_everybody_who_comes_during_the_drain_is_answered(
    own_redis: OwnRedis, tmp_path: Path, way: str
) -> None:
    name, arguments, number, to_all = WAYS[way]
    options: dict[str, Any] = {"drain_seconds": DRAIN, "health": True}
    if arguments:
        options["redis_url"] = own_redis().url
    server = Server(tmp_path, options, server=name, arguments=arguments)
    try:
        await all_serve(server, sum(map(int, arguments[1:])))
        send = os.killpg if to_all else os.kill
        await judge(server, lambda: send(server.pid, number))
    finally:
        server.discard()


async def test_worker_answers_for_another_that_died_until_a_second_signal(
    own_redis: OwnRedis, tmp_path: Path
) -> None:
    options = {"drain_seconds": 3600, "health": True, "redis_url": own_redis().url}
    server = Server(tmp_path, options, server="realtime", arguments=("--workers", "2"))
    try:
        async with AsyncExitStack() as stack:
            await all_serve(server, 2)
            dead, _ = workers_of(server)
            os.kill(dead, signal.SIGSTOP)
            await fill(server, stack)  # all of them at the other one
            os.kill(server.pid, signal.SIGTERM)
            os.kill(dead, signal.SIGKILL)
            async with asyncio.timeout(TIMEOUT):
                while await call(server.port, KINDS["ready"].head) != "503":
                    await asyncio.sleep(PAUSE)
            for kind in KINDS.values():
                assert await call(server.port, kind.head) == kind.answers[-1]
            while await call(server.port, KINDS["ready"].head) != REFUSED:
                os.kill(server.pid, signal.SIGTERM)
                await asyncio.sleep(0.1)
        assert await asyncio.to_thread(server.wait) == 0
        assert "Traceback" not in server.log
    finally:
        server.discard()
