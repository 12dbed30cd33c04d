"""What publishing with Redis does to the process it is done in: forks, threads, event loops.

The programs run in Python's development mode with every warning an error, and must not
write anything to standard error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.processes import SET_UP, Worker, call_view, environment, output, worker
from tests.redis_server import RedisServer
from tests.server import Server

CHANNEL = "kept:a"
OPTIONS = {
    "namespaces": [{"name": "kept", "history_size": 10_000, "history_lifetime": 300}],
    "v3_use_offset": True,
}
POOL_SIZE = 50
"""Connections a process without an event loop has to one Redis, at most."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.kill()


@pytest.fixture
def redis(own: RedisServer) -> RedisServer:
    """A Redis in which there is nothing, used by one test at a time."""
    with own.client() as client:
        client.config_set("maxmemory", 0)
        client.flushall()
    return own


@pytest.fixture(scope="module")
def options(own: RedisServer) -> dict[str, Any]:
    return {**OPTIONS, "redis_url": own.url, "redis_prefix": "processes"}


@pytest.fixture
def variables(tmp_path: Path, redis: RedisServer, options: dict[str, Any]) -> dict[str, str]:
    """The environment of a process of the service."""
    return environment(tmp_path, options)


class Kept:
    """What is kept in the channel, told by another process."""

    def __init__(self, reader: Worker) -> None:
        self._reader = reader

    def entries(self) -> list[dict[str, Any]]:
        outcome = self._reader.call("call", "history", CHANNEL)
        assert "error" not in outcome, outcome
        entries: list[dict[str, Any]] = outcome["result"]
        return entries

    def data(self) -> list[Any]:
        return [entry["data"] for entry in self.entries()]

    def check(self, expected: Counter[Any]) -> None:
        """Everything expected is kept once, numbered without a gap, each with a uid of its own."""
        kept = self.entries()
        assert Counter(entry["data"] for entry in kept) == expected
        offsets = [entry["offset"] for entry in kept]
        assert offsets == list(range(1, expected.total() + 1))
        assert len({entry["uid"] for entry in kept} - {""}) == len(kept)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, options: dict[str, Any]) -> Iterator[Kept]:
    with worker(environment(tmp_path_factory.mktemp("reader"), options)) as reader:
        yield Kept(reader)


def connections_opened(redis: RedisServer) -> int:
    """Connections that were opened so far; asking opens one."""
    with redis.client() as client:
        return int(client.info("stats")["total_connections_received"])


# forks

FORKED = f"""
def publish(name, count):
    for number in range(count):
        realtime.publish({CHANNEL!r}, f"{{name}}-{{number}}")

def forked(work):
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)

def ended(*children):
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_forked_processes_publish_beside_their_parent_with_uids_of_their_own(
    redis: RedisServer, variables: dict[str, str], kept: Kept
) -> None:
    code = """
def family():
    publish("child0", 20)
    grandchild = forked(lambda: publish("grandchild", 20))
    publish("child0b", 20)
    ended(grandchild)

publish("before", 5)
children = [forked(family), forked(lambda: publish("child1", 20))]
publish("beside", 20)
ended(*children)
publish("after", 5)
"""
    before = connections_opened(redis)

    assert output(SET_UP + FORKED + code, variables, forked=True) == []

    assert connections_opened(redis) - before - 1 == 4, "one for each process"
    names = ("beside", "child0", "child0b", "child1", "grandchild")
    counts = {"before": 5, "after": 5, **dict.fromkeys(names, 20)}
    kept.check(Counter(f"{n}-{i}" for n, count in counts.items() for i in range(count)))


def test_one_idempotency_key_in_fifty_processes_publishes_once(
    variables: dict[str, str], kept: Kept
) -> None:
    code = f"""
go, wait = os.pipe()[::-1]
answers, tell = os.pipe()

def publish_once(number):
    os.close(go)
    os.read(wait, 1)  # ends when the parent closes the other side
    offset, epoch = realtime.publish({CHANNEL!r}, number, once="the same")
    os.write(tell, f"{{offset}} {{epoch}}\\n".encode())

children = [forked(lambda: publish_once(number)) for number in range(50)]
os.close(go)
ended(*children)
os.close(tell)
sys.stdout.write(os.read(answers, 65536).decode())
"""
    positions = output(SET_UP + FORKED + code, variables, forked=True)

    assert len(positions) == 50
    assert len(set(positions)) == 1
    assert positions[0].startswith("1 ")
    assert len(kept.entries()) == 1


def test_process_forked_while_threads_publish_is_not_stuck(
    variables: dict[str, str], kept: Kept
) -> None:
    """Locks that a thread held at that moment must not stay held in the child."""
    code = """
import sys
sys.setswitchinterval(1e-5)
realtime.publish("a", 1)  # everything is imported now: a fork during an import is stuck anyway
going = True
def go_on():
    while going:
        realtime.publish("a", 1)
threads = [threading.Thread(target=go_on) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(20):
    ended(forked(lambda: publish(f"child{number}", 1)))
going = False
for thread in threads:
    thread.join()
"""
    assert output(SET_UP + FORKED + code, variables, forked=True) == []

    kept.check(Counter(f"child{number}-0" for number in range(20)))


def test_view_may_fork_a_process_that_publishes(
    cluster: Callable[..., list[Server]], redis: RedisServer
) -> None:
    """On a server, in whose process there are an event loop, a node and their connections."""
    (server,) = cluster(1, redis, **OPTIONS)
    for view in ("forked", "forked", "sync-view", "async-view"):
        assert "error" not in call_view(server, view, "publish", CHANNEL, view)
    kept = call_view(server, "async-view", "history", CHANNEL)["result"]
    assert [entry["data"] for entry in kept] == ["forked", "forked", "sync-view", "async-view"]
    assert len({entry["uid"] for entry in kept}) == 4


def test_process_forked_by_a_view_reaches_nobody_without_redis(
    serve: Callable[..., Server], unique: str
) -> None:
    """It has the node of its parent in memory, but not the event loop that runs it."""
    outcome = call_view(serve(), "forked", "publish", unique, 1)
    assert outcome["error"] == "NotServing", outcome


# threads


@pytest.mark.parametrize(
    ("threads", "each"), [(POOL_SIZE, 20), (4 * POOL_SIZE, 1)], ids=["enough", "too few"]
)
def test_many_threads_share_a_bounded_number_of_connections(
    redis: RedisServer, variables: dict[str, str], kept: Kept, threads: int, each: int
) -> None:
    code = f"""
from concurrent.futures import ThreadPoolExecutor

def publish(thread):
    together.wait()
    for number in range({each}):
        realtime.publish({CHANNEL!r}, f"{{thread}}-{{number}}")

for turn in range(2):
    together = threading.Barrier({threads})
    with ThreadPoolExecutor({threads}) as pool:
        list(pool.map(publish, range(turn * {threads}, (turn + 1) * {threads})))
print(threading.active_count())
"""
    before = connections_opened(redis)

    assert output(SET_UP + code, variables, forked=True) == ["1"]

    assert connections_opened(redis) - before - 1 <= POOL_SIZE
    kept.check(Counter(f"{t}-{n}" for t in range(2 * threads) for n in range(each)))


# event loops


def test_twins_run_in_one_event_loop_after_another(
    redis: RedisServer, variables: dict[str, str], kept: Kept
) -> None:
    code = f"""
import logging
logging.getLogger("asyncio").setLevel(logging.ERROR)  # it tells of slow turns of the loop
for number in range(40):
    asyncio.run(realtime.apublish({CHANNEL!r}, number))
assert [e["data"] for e in asyncio.run(realtime.ahistory({CHANNEL!r}))] == list(range(40))
print(threading.active_count())
"""
    before = connections_opened(redis)

    assert output(SET_UP + code, variables, forked=True) == ["1"]

    assert connections_opened(redis) - before - 1 == 1
    kept.check(Counter(range(40)))


def test_many_coroutines_at_once_share_a_bounded_number_of_connections(
    redis: RedisServer, variables: dict[str, str], kept: Kept
) -> None:
    code = f"""
import logging
logging.getLogger("asyncio").setLevel(logging.ERROR)

async def main(start):
    await asyncio.gather(*(realtime.apublish({CHANNEL!r}, start + n) for n in range(500)))

asyncio.run(main(0))
asyncio.run(main(500))
"""
    before = connections_opened(redis)

    assert output(SET_UP + code, variables, forked=True) == []

    assert connections_opened(redis) - before - 1 <= POOL_SIZE
    kept.check(Counter(range(1000)))


def test_cancelled_twin_does_not_spoil_the_next_one(variables: dict[str, str], kept: Kept) -> None:
    code = f"""
async def main():
    for number in range(50):
        task = asyncio.create_task(realtime.apublish({CHANNEL!r}, "maybe"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await realtime.apublish({CHANNEL!r}, number)

asyncio.run(main())
"""
    assert output(SET_UP + code, variables, forked=True) == []

    assert [data for data in kept.data() if data != "maybe"] == list(range(50))
