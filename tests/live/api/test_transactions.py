"""Publishing in transactions, in views of a site that is served."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.conftest import new_word
from tests.live.configurations import Connect, Serve
from tests.live.hooks_site import environment
from tests.live.listening_site import OPTIONS, do
from tests.live.processes import environment as of_worker
from tests.live.processes import worker
from tests.redis_server import RedisServer
from tests.server import Server


@pytest.fixture(scope="module", params=["memory", "redis"])
def start(
    request: pytest.FixtureRequest,
    serve: Serve,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Server]:
    """Start, or find, a site with views that publish in transactions; with each engine."""
    shared = {"redis_url": redis_server.url, "redis_prefix": "transactions"}
    options = OPTIONS | (shared if request.param == "redis" else {})
    nowhere = tmp_path_factory.getbasetemp() / "signals-not-read"
    variables = environment(tmp_path_factory, "signals") | {"TEST_SIGNALS": str(nowhere)}

    def start(**more: str) -> Server:
        return serve(environment=variables | more, **options)

    return start


@pytest.fixture
def server(start: Callable[..., Server]) -> Server:
    """The site with ATOMIC_REQUESTS off."""
    return start()


@pytest.fixture
def atomic_server(start: Callable[..., Server]) -> Server:
    """The same with ATOMIC_REQUESTS."""
    return start(TEST_ATOMIC_REQUESTS="1")


async def test_publications_of_a_transaction_go_out_after_its_commit(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})
    assert do(server, "atomic", channel=channel) == [[], [1, 2, 3]]
    assert [(await client.publication())["data"] for _ in range(3)] == [1, 2, 3]
    await client.quiet()


async def test_publications_of_a_rolled_back_transaction_go_nowhere(
    server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(server)
    await client.result("subscribe", {"channel": channel})
    assert do(server, "rolled_back", channel=channel) == []
    await client.quiet()


async def test_publication_of_an_atomic_request_goes_out_at_its_end(
    atomic_server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(atomic_server)
    await client.result("subscribe", {"channel": channel})
    assert do(atomic_server, "in_request", channel=channel, fail=False) == []
    assert (await client.publication())["data"] == 1


async def test_publication_of_an_atomic_request_that_fails_goes_nowhere(
    atomic_server: Server, connect: Connect, unique: str
) -> None:
    channel = f"kept:{unique}"
    client = await connect(atomic_server)
    await client.result("subscribe", {"channel": channel})
    address = f"{atomic_server.address}/do/in_request"
    answer = httpx.post(address, json={"channel": channel, "fail": True}, timeout=20)
    assert answer.status_code == 500
    await client.quiet()
    assert atomic_server.api("history", channel=channel)["result"]["publications"] == []


def test_many_publications_are_few_round_trips_and_keep_their_order(
    own_redis: Callable[..., RedisServer], tmp_path_factory: pytest.TempPathFactory
) -> None:
    redis = own_redis()
    options = {**OPTIONS, "redis_url": redis.url, "redis_prefix": new_word()}
    of_process = of_worker(tmp_path_factory.mktemp("worker"), options)
    channels = ["kept:a", "kept:b"]
    publications = [(channels[number % 2], number) for number in range(100)]

    with redis.client() as client, worker(of_process) as process:
        brings_the_script = process.call("call", "publish", "kept:c", "first")
        assert "error" not in brings_the_script, brings_the_script
        before = client.info("stats")["total_reads_processed"]
        outcome = process.call("call", "publish_many", publications)
        after = client.info("stats")["total_reads_processed"]

        assert "error" not in outcome, outcome
        # a round trip each would be a read each; one read is the second question of this test
        assert after - before <= 10
        for number, channel in enumerate(channels):
            kept = process.call("call", "history", channel)["result"]
            assert [entry["data"] for entry in kept] == [*range(number, 100, 2)]
