"""The live tail over restarts of its server; other nodes that are away, and Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.live.panel_servers import PanelServer
from tests.live.tail_page import TailPage
from tests.redis_server import RedisServer


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The Redis of the two servers."""
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def nodes(
    panel_site: Path, redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[PanelServer]]:
    """Two servers over a Redis."""
    nodes = [
        PanelServer(panel_site, tmp_path_factory.mktemp("node"), redis_url=redis.url)
        for _ in range(2)
    ]
    yield nodes
    for node in nodes:
        node.stop()


@pytest.mark.parametrize("namespace", ["demo:", ""], ids=["history", "no history"])
def test_restart_without_redis_is_a_gap(tail_page: TailPage, unique: str, namespace: str) -> None:
    page = tail_page.open(namespace + unique)
    page.publish("before")
    page.until(lambda: page.data == ['"before"'], "the first publication")

    page.server.stop()
    page.until(lambda: page.state == "waiting", "the lost connection")
    page.server.start()
    page.until(lambda: page.state == "live", "the new connection")
    page.publish("after")

    page.until(lambda: page.data == ['"after"', '"before"'], "the last publication")
    assert page.kinds == ["publish", "gap", "publish"]
    assert "may be missing" in page.note("gap")
    notes = page.texts("#channel-tail .panel-note")
    assert any("keeps no history" in note for note in notes) is (namespace == "")


def test_restart_with_redis_recovers_what_was_published_meanwhile(
    panel_browser: Chrome, nodes: list[PanelServer], unique: str
) -> None:
    first, second = nodes
    page = TailPage(panel_browser, first).open(f"demo:{unique}")
    page.publish("before")
    page.until(lambda: page.data == ['"before"'], "the first publication")

    first.stop()
    page.until(lambda: page.state == "waiting", "the lost connection")
    second.publish(page.channel, "meanwhile", "as well")
    first.start()
    page.until(lambda: page.state == "live", "the new connection")
    page.publish("after")

    page.until(lambda: len(page.data) == 4, "all publications")
    assert page.data == ['"after"', '"as well"', '"meanwhile"', '"before"']
    assert page.kinds == ["publish", "publish", "publish", "recovered", "publish"]
    assert "nothing is missing" in page.note("recovered")
    assert page.texts('#tail-list [data-part="late"]') == ["caught up", "caught up"]


def test_node_that_does_not_answer_is_named(
    panel_browser: Chrome, nodes: list[PanelServer], unique: str
) -> None:
    first, second = nodes
    page = TailPage(panel_browser, first).open(f"demo:{unique}")
    assert page.texts("#channel-summary .panel-warnings") == []
    second.server.kill()
    page.element("channel-refresh").click()
    page.until(lambda: page.texts("#channel-summary .panel-warnings"), "the warning")
    [warning] = page.texts("#channel-summary .panel-warnings")
    assert "did not answer; its subscribers are not counted." in warning


def test_tail_says_that_nothing_comes_while_redis_is_away(
    panel_browser: Chrome, nodes: list[PanelServer], redis: RedisServer, unique: str
) -> None:
    page = TailPage(panel_browser, nodes[0]).open(f"demo:{unique}")
    redis.kill()
    page.until(lambda: page.state == "waiting", "the state")
    assert "the service does not answer" in page.element("tail-state").text
    redis.start()
    page.until(lambda: page.state == "live", "the state of before")
    page.publish("after")
    page.until(lambda: page.data == ['"after"'], "a publication")
