"""The panel's pages in a real browser: what is live, the themes, a phone's width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import console, wait_for
from tests.live.panel_site import Guests
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

PAGES = ("overview", "channels", "channel", "publication")


@pytest.fixture
def browser(staffed_browser: Chrome) -> Iterator[Chrome]:
    """The browser; whatever its console says is an error, above all what the policy blocked."""
    yield staffed_browser
    logged = console(staffed_browser)
    staffed_browser.execute_script("localStorage.clear()")
    assert logged == []


Visit = Callable[..., None]


@pytest.fixture
def visit(browser: Chrome, staffed_site: ReadySite) -> Visit:
    """Open a page by its name."""

    def visit(name: str, **query: object) -> None:
        browser.get(staffed_site.address + page_path(name, **query))

    return visit


def tile(browser: Chrome, name: str) -> str:
    """A large number, read at one moment: the page renews itself."""
    script = """
        return [...document.querySelectorAll(".panel-tiles > div")]
            .find((tile) => tile.querySelector("dt").textContent === arguments[0])
            ?.querySelector("dd").textContent;
    """
    return str(browser.execute_script(script, name))


def rate(browser: Chrome, name: str) -> float:
    """Messages per second; 0 as long as the page does not know them."""
    output = browser.find_element(By.CSS_SELECTOR, f'[data-rate="{name}"] output').text
    return 0 if output in ("", "\N{EN DASH}") else float(output.replace(",", ""))


async def test_overview_follows_the_service_without_being_loaded_again(
    browser: Chrome, visit: Visit, guests: Guests, unique: str
) -> None:
    visit("overview")
    wait_for(browser, lambda: "Live" in browser.page_source, "the live page")
    browser.execute_script("window.neverLoadedAgain = true")
    # those of earlier tests leave while the page is there
    wait_for(browser, lambda: tile(browser, "Channels") == "0", "no channels")

    await guests.open("17", unique)
    wait_for(browser, lambda: tile(browser, "Channels") == "1", "the channel")

    assert browser.execute_script("return window.neverLoadedAgain")


async def test_overview_draws_messages_per_second(
    browser: Chrome, visit: Visit, staffed_site: ReadySite, guests: Guests, unique: str
) -> None:
    visit("overview")
    await guests.open("17", unique)

    def publish_until_shown() -> bool:
        staffed_site.publish(unique, 1, 2, 3)
        return rate(browser, "published") > 0 and rate(browser, "delivered") > 0

    wait_for(browser, publish_until_shown, "messages per second")

    points = browser.find_element(By.CSS_SELECTOR, '[data-rate="delivered"] polyline')
    assert points.get_attribute("points")


RATES = [
    ([(0.0, 0, 0)], None, "one word"),
    ([(0.0, 0, 0), (2.0, 10, 40)], {"published": 5, "delivered": 20}, "two words"),
    ([(0.0, 0, 0), (2.0, 10, 40), (2.1, 10, 40)], {"published": 5, "delivered": 20}, "repeated"),
    ([(0.0, 50, 50), (2.0, 0, 0)], {"published": 0, "delivered": 0}, "counter that fell"),
]
"""What a node said: at (seconds), published, delivered; and messages per second after that."""


@pytest.mark.parametrize(
    ("said", "expected"), [row[:2] for row in RATES], ids=[row[2] for row in RATES]
)
def test_rates_are_counted_between_two_words_of_a_node(
    browser: Chrome,
    visit: Visit,
    said: list[tuple[float, int, int]],
    expected: dict[str, Any] | None,
) -> None:
    visit("publication")
    script = """
        const [said, done] = arguments;
        import("/static/admin_panel/rates.js").then(({ Rates }) => {
          const rates = new Rates();
          let found = null;
          for (const [at, published, delivered] of said) {
            // asked a second after the node spoke
            found = rates.add([{ uid: "a", published, delivered, last_seen_seconds: 1 }], at + 1);
          }
          done(found);
        });
    """

    assert browser.execute_async_script(script, said) == expected


@pytest.mark.parametrize("page", PAGES)
def test_page_follows_the_theme_of_the_admin(browser: Chrome, visit: Visit, page: str) -> None:
    backgrounds = set()
    for theme in ("light", "dark"):
        visit(page, channel="demo:lobby")
        browser.execute_script("localStorage.setItem('theme', arguments[0])", theme)
        visit(page, channel="demo:lobby")
        body = browser.find_element(By.TAG_NAME, "body")
        backgrounds.add(body.value_of_css_property("background-color"))

    assert len(backgrounds) == 2


def test_theme_button_of_the_admin_works_under_the_policy(browser: Chrome, visit: Visit) -> None:
    visit("overview")
    theme = browser.find_element(By.TAG_NAME, "html").get_attribute("data-theme")

    browser.find_element(By.CLASS_NAME, "theme-toggle").click()

    assert browser.find_element(By.TAG_NAME, "html").get_attribute("data-theme") != theme


@pytest.mark.parametrize("page", PAGES)
async def test_page_fits_a_phone(
    browser: Chrome, visit: Visit, guests: Guests, unique: str, page: str
) -> None:
    long = unique + "-long" * 40
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        await guests.open("17", long)
        visit(page, channel=long)
        width = browser.execute_script("return document.documentElement.scrollWidth")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert width == 390
