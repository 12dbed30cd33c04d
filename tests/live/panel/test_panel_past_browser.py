"""The last hour in a real browser: what operators ask of it, and what they need for the answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import wait_for
from tests.live.panel_servers import PanelServer
from tests.panel.paths import page_path

OPENED = "[...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())"


@pytest.fixture(scope="module")
def past_server(
    panel_site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PanelServer]:
    """A server whose node has had an hour of load; see `past_site`."""
    server = PanelServer(
        panel_site,
        tmp_path_factory.mktemp("past-server"),
        application="tests.live.past_site:application",
    )
    yield server
    server.discard()


@pytest.fixture
def overview(panel_browser: Chrome, past_server: PanelServer) -> Chrome:
    """The browser, at the overview of that server."""
    panel_browser.get(past_server.address + page_path("overview"))
    return panel_browser


def texts(browser: Chrome, selector: str) -> list[str]:
    """The texts of these elements, read at one moment: the page renews itself."""
    found: list[str] = browser.execute_script(f"return {OPENED}", selector)
    return found


def words(browser: Chrome, chart: str) -> str:
    """What a chart says to a screen reader."""
    svg = browser.find_element(By.CSS_SELECTOR, f"[data-chart={chart}] svg[role=img]")
    return str(svg.get_attribute("aria-label"))


def test_message_rate_of_the_last_hour_is_on_the_first_page(overview: Chrome) -> None:
    assert " highest 7" in words(overview, "published")
    assert "gaps: 1." in words(overview, "published")
    assert texts(overview, "[data-chart=published] .scale") == ["100", "50"]
    assert len(texts(overview, "[data-chart=published] .time")) >= 3
    # the line has a gap where the node was stopped
    line = overview.find_element(By.CSS_SELECTOR, "[data-chart=published] path.line")
    assert str(line.get_attribute("d")).count("M") == 2

    overview.find_element(By.ID, "hour-table-title").click()

    assert len(texts(overview, "#hour-table tbody tr")) == 12


def test_whether_the_service_is_healthy_and_was_is_told_with_one_click(overview: Chrome) -> None:
    assert texts(overview, "#panel-health strong") == ["Healthy"]
    marks = texts(overview, ".panel-marks li")
    assert [mark[9:] for mark in marks][:3] == [
        "The engine was lost.",
        "300 connections ended at about the same time.",
        "The engine is back.",
    ]

    overview.find_element(By.LINK_TEXT, "All events").click()

    wait_for(overview, lambda: texts(overview, "#events tbody tr"), "the events")
    happened = texts(overview, "#events .panel-event")
    assert "150 connections were refused, because of a limit or of overload." in happened
    assert "Redis pub/sub was lost: 10.0.0.7:6379: no answer; publications wait" in happened


def test_charts_are_renewed_and_an_opened_table_stays_with_its_focus(overview: Chrome) -> None:
    overview.find_element(By.ID, "hour-table-title").click()
    overview.execute_script(
        """
        document.querySelector("#overview-hour .panel-charts").remove();
        performance.now = () => 1e9;  // the next time to ask has come
        """
    )

    wait_for(overview, lambda: texts(overview, "[data-chart=lag]"), "the charts")

    assert overview.execute_script("return document.getElementById('hour-table').open")
    assert overview.execute_script("return document.activeElement.id") == "hour-table-title"


def test_parts_are_seen_in_the_order_in_which_they_are_read(overview: Chrome) -> None:
    tops = overview.execute_script(
        """
        const parts = ["#panel-health", "#overview-live", "#overview-hour", "#overview-nodes"];
        return parts.map((id) => document.querySelector(id).getBoundingClientRect().top);
        """
    )
    assert tops == sorted(tops)
