"""The page of the quick start in a real browser."""

from __future__ import annotations

import json
import re

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import console, wait_for
from tests.install.pages import steps
from tests.install.running import Running, Visitor
from tests.server import ROOT, wait_until

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations

JS = ROOT / "tests" / "js"
LIBRARY = r"https://cdn\.jsdelivr\.net/npm/centrifuge@([\d.]+)/dist/centrifuge\.min\.js"


def test_pages_load_the_client_library_that_is_tested() -> None:
    tested = json.loads((JS / "package.json").read_text())["dependencies"]["centrifuge"]
    pages = [page.read_text() for page in (ROOT / "docs").glob("*.md")]
    assert {version for page in pages for version in re.findall(LIBRARY, page)} == {tested}


def test_page_shows_what_its_form_publishes(
    browser: Chrome, server: Running, visitor: Visitor
) -> None:
    browser.get(f"{server.address}/api-of-its-own/who")
    browser.add_cookie({"name": "sessionid", "value": visitor.http.cookies["sessionid"]})
    browser.get(f"{server.address}/api-of-its-own/page")
    (key,) = re.findall(r"apikey ([\w-]+)", steps("quickstart.md")["curl"])
    wait_until(lambda: server.subscribers(key) == 1, what="the page's subscription")
    browser.find_element(By.NAME, "text").send_keys("<b>hello</b>")
    browser.find_element(By.CSS_SELECTOR, "form button").click()

    def shown() -> list[str]:
        return [item.text for item in browser.find_elements(By.CSS_SELECTOR, "#messages li")]

    wait_for(browser, lambda: shown() == ["<b>hello</b>"], "the message")
    assert [entry for entry in console(browser) if "favicon" not in entry] == []
