"""A real browser for tests: Debian's Chromium, steered by its own chromedriver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.common.exceptions import (
    JavascriptException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.conftest import require

TIMEOUT = 120.0
"""Seconds; a page has this long to show what it should."""

SCRIPT_TIMEOUT = 60
"""Seconds that an asynchronous script may take, unless a test says otherwise."""

NOT_YET = (JavascriptException, NoSuchElementException, StaleElementReferenceException)
"""What a look at a page gives while the next page takes its place."""

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

NO_RESERVE = (
    "--disable-features=BackForwardCache,SpareRendererForSitePerProcess,RenderDocument"
    ",ProactivelySwapBrowsingInstance"
)
"""Keep no page that was left, and nothing ready for the next: a page takes half of the time."""


def start_browser(profile: Path, *, keeps_pages: bool = False) -> Chrome:
    """A browser with an empty profile; the caller quits it.

    Args:
        keeps_pages: whether "Back" may show a page as it was left, as it does for visitors.
    """
    browser = require("chromium", "Debian: apt-get install chromium")
    driver = require("chromedriver", "Debian: apt-get install chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}", *([] if keeps_pages else [NO_RESERVE])):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=Service(driver))


@contextmanager
def browsing(profile: Path, *, keeps_pages: bool = False) -> Iterator[Chrome]:
    """A browser with an empty profile, which ends with the block. See `start_browser`."""
    browser = start_browser(profile, keeps_pages=keeps_pages)
    try:
        yield browser
    finally:
        browser.quit()


def wait_for(browser: Chrome, condition: Callable[[], object], what: str) -> None:
    """Wait until the page shows something; fails with the page's text when it does not."""

    def text() -> str:
        return browser.find_element(By.TAG_NAME, "body").text

    try:
        wait = WebDriverWait(browser, TIMEOUT, poll_frequency=0.05, ignored_exceptions=NOT_YET)
        wait.until(lambda _: condition())
    except Exception as error:
        raise AssertionError(f"not seen in {TIMEOUT} s: {what}\n{text()}") from error


def leave(browser: Chrome) -> None:
    """Leave the page for an empty one of its process: what the browser opens has a new process."""
    browser.execute_script("location.replace('about:blank')")


def renew(browser: Chrome) -> None:
    """Make a browser as new as its next user sees it: one empty tab, and no cookies."""
    left = browser.window_handles
    browser.switch_to.new_window("tab")
    tab = browser.current_window_handle
    for window in left:
        browser.switch_to.window(window)
        browser.close()
    browser.switch_to.window(tab)
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    browser.set_script_timeout(SCRIPT_TIMEOUT)
    console(browser)


def console(browser: Chrome) -> list[str]:
    """What the page wrote to the browser's console since the last call: errors, CSP reports."""
    return [entry["message"] or str(entry) for entry in browser.get_log("browser")]
