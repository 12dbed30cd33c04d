"""The tutorial, followed to the letter from an empty directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import wait_for
from tests.install.pages import fences, steps
from tests.install.running import Running, log_in
from tests.install.site import USER, Site

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
        log_in(browser)

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
