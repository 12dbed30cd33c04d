"""A channel layer in a process that forks."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from tests.redis_server import RedisServer
from tests.server import ROOT

FORK = textwrap.dedent(
    """
    import asyncio, os, sys, threading
    from realtime.engine.redis.layer import RedisChannelLayer

    layer = RedisChannelLayer(hosts=[sys.argv[1]], prefix=sys.argv[2])

    async def talk(name, rounds):
        channel = await layer.new_channel()
        await layer.group_add(name, channel)
        for number in range(rounds):
            await layer.group_send(name, {"type": name, "number": number})
            assert await layer.receive(channel) == {"type": name, "number": number}

    started, forked = threading.Event(), threading.Event()

    async def parent():
        await talk("parent", 10)
        started.set()
        await asyncio.to_thread(forked.wait)
        await talk("parent", 200)

    thread = threading.Thread(target=asyncio.run, args=(parent(),))
    thread.start()
    started.wait()
    layer.bus.blocking(0).execute("ECHO", "open")
    child = os.fork()
    if child == 0:
        asyncio.run(talk("child", 200))
        assert layer.bus.blocking(0).execute("ECHO", "child") == b"child"
        os._exit(0)
    forked.set()
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert layer.bus.blocking(0).execute("ECHO", "parent") == b"parent"
    print("done")
    """
)


def test_forked_process_gets_connections_of_its_own(redis_server: RedisServer, unique: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORK, redis_server.url, unique],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout == "done\n"
