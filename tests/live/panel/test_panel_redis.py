"""The panel over Redis: more than one node, one that is gone, and Redis away."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.conftest import connection_token, start_cluster
from tests.live.configurations import FORCED
from tests.live.panel_site import OPERATOR, PASSWORD, sign_in
from tests.live.panel_staff import post
from tests.panel.paths import page_path
from tests.processes import run_python
from tests.protocol_client import open_client
from tests.redis_server import RedisServer
from tests.server import ROOT, Server, wait_until

REDIS_PASSWORD = "the-secret-of-redis"
OPTIONS = {"redis_connect_timeout": 1, "redis_read_timeout": 1}
PAGES = ("overview", "channels")

Cluster = Callable[..., list[Server]]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated database with an operator in it."""
    path = str(tmp_path_factory.mktemp("database") / "db.sqlite3")
    for arguments in (["migrate", "--verbosity", "0"], ["createsuperuser", "--noinput"]):
        variables = {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "TEST_DATABASE": path,
            "DJANGO_SUPERUSER_USERNAME": OPERATOR,
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "DJANGO_SUPERUSER_EMAIL": "",
        }
        run_python(["-m", "django", *arguments], ROOT, os.environ | variables).check_returncode()
    assert Path(path).exists()
    return path


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis with a password, which no page may show."""
    server = RedisServer(tmp_path_factory.mktemp("redis"), password=REDIS_PASSWORD).start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, redis: RedisServer, database: str
) -> Iterator[list[Server]]:
    """Two nodes."""
    environment = {"TEST_DATABASE": database}
    servers = start_cluster(tmp_path_factory, 2, redis, environment=environment, **OPTIONS)
    yield servers
    for server in servers:
        server.discard()


@pytest.fixture(scope="module")
def operator(servers: list[Server]) -> Iterator[httpx.Client]:
    """The operator's browser, at the first node."""
    browser = sign_in(servers[0].address, PASSWORD)
    yield browser
    browser.close()


def text(browser: httpx.Client, page: str = "overview") -> str:
    return browser.get(page_path(page)).text


async def test_subscribers_are_counted_over_all_nodes(
    servers: list[Server], operator: httpx.Client, unique: str
) -> None:
    tokens = [connection_token(user, channels=[unique]) for user in ("17", "18")]
    first, second = servers
    async with (
        open_client(first.socket, token=tokens[0]),
        open_client(second.socket, token=tokens[1]),
    ):
        wait_until(
            lambda: 'data-label="Subscribers">2</td>' in text(operator, "channels"),
            what="two subscribers",
        )


async def test_users_who_are_online_count_once_however_many_nodes_have_them(
    servers: list[Server], operator: httpx.Client
) -> None:
    first, second = servers
    async with (
        open_client(first.socket, token=connection_token("17")),
        open_client(second.socket, token=connection_token("17")),
        open_client(second.socket, token=connection_token("18")),
    ):
        wait_until(lambda: "Users online</a></dt><dd>2</dd>" in text(operator), what="two users")


def test_both_nodes_and_the_round_trip_to_redis_are_shown(operator: httpx.Client) -> None:
    wait_until(lambda: "<dt>Nodes</dt><dd>2</dd>" in text(operator), what="two nodes")
    html = text(operator)
    assert "Engine round trip" in html
    table = html.partition('id="nodes"')[2]
    assert table.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr") == 2


async def test_frozen_node_is_named_on_every_page_that_counts_its_clients(
    cluster: Cluster, redis: RedisServer, database: str, unique: str
) -> None:
    first, second = cluster(
        2, redis, environment={"TEST_DATABASE": database}, redis_prefix=unique, **OPTIONS
    )
    token = connection_token(unique, channels=[unique])
    with closing(sign_in(first.address, PASSWORD)) as browser:
        async with open_client(second.socket, token=token) as client:
            os.kill(second.pid, signal.SIGSTOP)
            try:
                wait_until(lambda: "has been silent for" in text(browser), 40, "a warning")
                overview = text(browser)
                channels = text(browser, "channels")
                channel = browser.get(page_path("channel", channel=unique)).text
                user = browser.get(page_path("user", user=unique)).text
                question = browser.get(page_path("user/disconnect", user=unique)).text
                publication = post(
                    browser, page_path("publication"), channel=unique, data='"asked first"'
                ).text
                outcome = post(browser, page_path("user/disconnect", user=unique)).text
            finally:
                os.kill(second.pid, signal.SIGCONT)
            assert await client.closed() == FORCED

    name = f"{socket.gethostname()}_{second.pid}"
    for html in (channels, channel, user, question, publication, outcome):
        assert f">{name}</bdi>" in html
    assert "<dd>1 <small>of 2</small></dd>" in overview
    assert f'<bdi class="panel-name">{name}</bdi> does not answer: its part of the last' in overview
    assert "No channel has a subscriber at the nodes that answered." in channels
    assert "This channel has no subscribers" not in channel
    assert "No connection at the nodes that answered." in user
    assert "No connection at the nodes that answered." in question
    assert "They will be closed when the node answers again." in question
    assert "All connections of" not in outcome
    assert f"A node is silent: {name}." in outcome


def test_pages_say_that_redis_is_away_and_come_back_with_it(
    redis: RedisServer, operator: httpx.Client
) -> None:
    redis.kill()

    for page in PAGES:
        response = operator.get(page_path(page))
        assert response.status_code == 503
        assert "Redis cannot be reached" in response.text
        assert "Clients stay connected" in response.text
        assert REDIS_PASSWORD not in response.text
    answer = operator.get(page_path("overview") + "data/").json()
    assert answer["available"] is False
    assert "Redis cannot be reached" in answer["parts"]["overview-live"]

    redis.start()

    wait_until(
        lambda: all(operator.get(page_path(page)).status_code == 200 for page in PAGES),
        what="the pages",
    )
    wait_until(
        lambda: all(words in text(operator, "events") for words in ("Redis was lost", "is back")),
        what="the events of both nodes",
    )


def test_publication_without_one_of_two_redis_says_of_each_channel_what_became_of_it(
    cluster: Cluster, own_redis: Callable[..., RedisServer], database: str, unique: str
) -> None:
    """Channels are spread over the two, so some of them can still be published into."""
    shards = [own_redis(), own_redis()]
    urls = ",".join(shard.url for shard in shards)
    [server] = cluster(
        1, shards[0], redis_url=urls, environment={"TEST_DATABASE": database}, **OPTIONS
    )
    browser = sign_in(server.address, PASSWORD)

    def publish(channels: str) -> str:
        # confirmed: how many it reaches cannot be counted without all of Redis
        path = page_path("publication")
        return post(browser, path, channel=channels, data='"kept"', confirmed="1").text

    shards[1].kill()
    works: list[str] = []
    fails: list[str] = []
    for number in range(40):
        name = f"{unique}-{number}"
        (works if "Published into" in publish(name) else fails).append(name)
        if works and fails:
            break
    names = [works[0], fails[0], f"{works[0]}-too"]

    html = publish(" ".join(names))

    assert "Not published into 2 of 3 channels" in html
    outcome = html.partition('id="outcome"')[2].partition("</section>")[0]
    results = re.findall(r"<bdi[^>]*>(.*?)</bdi></th><td>(.*?)</td>", outcome)
    assert results == [
        (names[1], "Redis cannot be reached."),
        (names[2], "Not tried."),
        (names[0], "published"),
    ]
    form = html.partition('<textarea name="channel"')[2].partition("</textarea>")[0]
    assert form.partition(">")[2].split() == names[1:]
    assert "&quot;kept&quot;" in html
    log = html.partition('id="recent"')[2]
    assert names[0] in log
    assert not any(name in log for name in names[1:])

    shards[1].start()
    rest = " ".join(names[1:])
    wait_until(lambda: "Published into 2 channels" in publish(rest), what="the rest of them")
    browser.close()


async def test_connections_of_a_user_are_listed_and_closed_at_every_node(
    servers: list[Server], operator: httpx.Client, unique: str
) -> None:
    path = page_path("user", user=unique)
    first, second = servers
    token = connection_token(unique)
    wait_until(lambda: "<dt>Nodes</dt><dd>2</dd>" in text(operator), what="two nodes")
    async with (
        open_client(first.socket, token=token) as one,
        open_client(second.socket, token=token) as other,
    ):
        html = operator.get(path).text
        assert one.client in html
        assert other.client in html

        path = page_path("user/disconnect", user=unique)
        response = await asyncio.to_thread(post, operator, path)

        assert [await client.closed() for client in (one, other)] == [FORCED, FORCED]
    assert "This user is not connected at the moment." in response.text


async def test_user_page_says_which_node_did_not_answer(
    servers: list[Server], operator: httpx.Client, unique: str
) -> None:
    first, second = servers
    wait_until(lambda: "<dt>Nodes</dt><dd>2</dd>" in text(operator), what="two nodes")
    async with open_client(first.socket, token=connection_token(unique)) as client:
        os.kill(second.pid, signal.SIGSTOP)
        try:
            html = operator.get(page_path("user", user=unique)).text
        finally:
            os.kill(second.pid, signal.SIGCONT)

    assert "1 of 2 nodes answered." in html
    assert client.client in html
