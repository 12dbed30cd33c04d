"""The tutorial, followed to the letter from an empty directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import start_browser, wait_for
from tests.install.pages import fences, steps
from tests.install.running import Running
from tests.install.site import PASSWORD, USER, Site

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations

FILES = {
    "settings": "mysite/settings.py",
    "urls": "mysite/urls.py",
    "tests": "chat/tests.py",
    "page": "chat/templates/chat/room.html",
}
"""Block → the file at whose end it goes."""


@pytest.fixture(scope="module")
def chat(sites: Mapping[str, Site], tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The project at the end of the tutorial."""
    site = Site(tmp_path_factory.mktemp("tutorial"), sites["newest"].environment)
    code = steps("tutorial.md")
    site.run(code["begin"])
    site.run(f"{code['init'].strip()} --yes")
    for name, file in FILES.items():
        site.append(file, code[name])
    (site.directory / "chat/models.py").write_text(code["models"])
    lines = code["views"].splitlines(keepends=True)[:-1]
    (site.directory / "chat/views.py").write_text("".join(lines) + code["view-channel"])
    site.run(code["prepare"])
    site.create_user()
    return site


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    """A browser in which no one is logged in."""
    browser = start_browser(tmp_path / "profile")
    yield browser
    browser.quit()


def test_every_block_is_followed() -> None:
    others = "begin init models views view-channel prepare run test"

    followed = {*FILES, *others.split()}
    assert set(steps("tutorial.md")) == followed
    assert fences("tutorial.md") == len(followed)


def test_its_tests_pass(chat: Site) -> None:
    assert "Ran 2 tests" in chat.run(steps("tutorial.md")["test"])


def test_room_shows_messages_and_who_is_there(chat: Site, browser: Chrome, tmp_path: Path) -> None:
    command = steps("tutorial.md")["run"].splitlines()[-1].split()
    running = Running(chat, [*command, "--noreload"], tmp_path / "log")
    try:
        browser.get(f"{running.address}/chat/lobby/")
        browser.find_element(By.NAME, "username").send_keys(USER)
        browser.find_element(By.NAME, "password").send_keys(PASSWORD)
        browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()

        def shown(element: str) -> str:
            return browser.find_element(By.ID, element).text

        wait_for(browser, lambda: shown("state") == "subscribed", "the subscription")
        wait_for(browser, lambda: shown("present") == "1", "who is there")
        browser.find_element(By.NAME, "text").send_keys("<b>hi</b>")
        browser.find_element(By.CSS_SELECTOR, "form button").click()
        wait_for(browser, lambda: shown("messages") == f"{USER}: <b>hi</b>", "the message")
        browser.refresh()
        wait_for(browser, lambda: shown("state") == "subscribed", "the subscription again")
        wait_for(browser, lambda: shown("messages") == f"{USER}: <b>hi</b>", "the message again")
    finally:
        running.stop()
