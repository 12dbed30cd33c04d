"""The panel's pages in a real browser: what is live, the themes, a phone's width, the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from tests.browser import console, wait_for
from tests.live.panel_site import Guests
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

PAGES = (
    *("overview", "events", "channels", "channel", "publication"),
    *("user", "namespaces", "console"),
)
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


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


def test_theme_button_of_the_admin_works_under_the_policy(browser: Chrome, visit: Visit) -> None:
    visit("overview")
    theme = browser.find_element(By.TAG_NAME, "html").get_attribute("data-theme")
    browser.find_element(By.CLASS_NAME, "theme-toggle").click()
    assert browser.find_element(By.TAG_NAME, "html").get_attribute("data-theme") != theme


@pytest.mark.parametrize("page", PAGES)
async def test_page_fits_a_phone_and_follows_the_theme(
    browser: Chrome, visit: Visit, guests: Guests, unique: str, page: str
) -> None:
    long = f"demo:{unique}" + "-long" * 40
    backgrounds = set()
    await guests.open(long, long)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        visit("namespaces")
        for theme in ("light", "dark"):
            browser.execute_script("localStorage.setItem('theme', arguments[0])", theme)
            visit(page, channel=long, user=long)
            if page == "console":
                params = browser.find_element(By.NAME, "params")
                params.clear()
                params.send_keys(f'{{"channel": "{long}"}}', Keys.CONTROL, Keys.ENTER)
                wait_for(browser, lambda: browser.find_elements(By.ID, "response"), "the answer")
            width = browser.execute_script("return document.documentElement.scrollWidth")
            assert width == PHONE["width"]
            body = browser.find_element(By.TAG_NAME, "body")
            backgrounds.add(body.value_of_css_property("background-color"))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_script("sessionStorage.clear()")
    assert len(backgrounds) == 2


# the palette

HOSTILE = "<img/src=x/onerror=document.title='gone'>"


def press_shortcut(browser: Chrome) -> None:
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()


def entries(browser: Chrome) -> list[str]:
    """The names in the palette, read at one moment."""
    script = "return [...document.querySelectorAll('#palette-list bdi')].map((e) => e.textContent)"
    names: list[str] = browser.execute_script(script)
    return names


async def test_keyboard_alone_finds_a_channel_from_within_the_editor(
    browser: Chrome, visit: Visit, guests: Guests, unique: str
) -> None:
    names = [f"{unique}-a", f"{unique}-b{HOSTILE}"]
    await guests.open("17", *names)
    visit("publication")
    browser.execute_script("document.querySelector('#editor textarea').focus()")

    press_shortcut(browser)
    browser.switch_to.active_element.send_keys(unique)
    wait_for(browser, lambda: entries(browser) == [*names, unique, unique], "the channels")
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    field = browser.switch_to.active_element
    marked = field.get_attribute("aria-activedescendant") or ""
    assert HOSTILE in browser.find_element(By.ID, marked).text
    field.send_keys(Keys.ENTER)

    path = page_path("channel", channel=names[1])
    wait_for(browser, lambda: "/channel/" in browser.current_url, "the page of the channel")
    assert browser.current_url.endswith(path)


def test_escape_closes_the_palette_and_the_focus_returns(browser: Chrome, visit: Visit) -> None:
    visit("publication")
    browser.execute_script("document.querySelector('#editor textarea').focus()")
    before = browser.switch_to.active_element
    press_shortcut(browser)
    inside = browser.switch_to.active_element
    inside.send_keys(Keys.ESCAPE)
    assert inside.get_attribute("role") == "combobox"
    wait_for(browser, lambda: browser.switch_to.active_element == before, "the editor")
