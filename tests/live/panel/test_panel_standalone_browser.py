"""Signing in to the panel by itself and out again, in a real browser, with the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import browsing, console, wait_for
from tests.panel.standalone_parts import COOKIE, PASSWORD
from tests.server import Server


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser that was never here; its console must stay empty."""
    with browsing(tmp_path_factory.mktemp("profile"), keeps_pages=True) as browser:
        yield browser
        assert console(browser) == []


def press(browser: Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def focused(browser: Chrome) -> str:
    """The text or name of what has the focus, after making sure that it shows."""
    element = browser.switch_to.active_element
    assert element.value_of_css_property("outline-style") != "none"
    return element.text or element.get_attribute("name") or ""


def tab_to(browser: Chrome, name: str) -> None:
    """Press the tab key until something has the focus."""
    for _ in range(30):
        if focused(browser).lower() == name.lower():
            return
        press(browser, Keys.TAB)
    raise AssertionError(f"{name} does not get the focus")


def path(browser: Chrome, server: Server) -> str:
    return str(browser.current_url).removeprefix(server.address)


def test_operator_signs_in_and_out_with_the_keyboard(browser: Chrome, server: Server) -> None:
    browser.get(f"{server.address}/channels/?q=chat")
    assert focused(browser) == "password"
    press(browser, "a wrong one", Keys.ENTER)
    wait_for(browser, lambda: browser.find_elements(By.ID, "error"), "the refusal")
    press(browser, PASSWORD, Keys.ENTER)
    wait_for(browser, lambda: path(browser, server) == "/channels/?q=chat", "the page asked for")

    assert "shared password" in browser.find_element(By.ID, "user-tools").text.lower()
    assert COOKIE not in browser.execute_script("return document.cookie")
    browser.get(server.address)
    wait_for(browser, lambda: "Live" in browser.page_source, "the overview, live")
    press(browser, Keys.TAB)
    tab_to(browser, "Sign out")
    press(browser, Keys.ENTER)
    wait_for(browser, lambda: "You are signed out." in browser.page_source, "the sign-in page")
    browser.back()
    wait_for(browser, lambda: path(browser, server).startswith("/sign-in/"), "no page from before")
