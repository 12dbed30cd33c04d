"""The channel page in a real browser, in the words of someone who looks at its live tail."""

from __future__ import annotations

from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.browser import wait_for
from tests.live.panel_servers import PanelServer
from tests.panel.paths import page_path


class TailPage:
    """The channel page in the words of someone who looks at its tail."""

    def __init__(self, browser: Chrome, server: PanelServer) -> None:
        self.browser = browser
        self.server = server
        self.channel = ""

    def open(self, channel: str) -> TailPage:
        """Load the page and wait until its tail is live."""
        self.load(channel)
        return self.until(lambda: self.state == "live", "the live tail")

    def load(self, channel: str) -> None:
        """Load the page; returns while its tail connects."""
        self.channel = channel
        self.browser.get(self.server.address + page_path("channel", channel=channel))

    def until(self, condition: Any, what: str) -> TailPage:
        wait_for(self.browser, condition, what)
        return self

    def publish(self, *data: object) -> None:
        self.server.publish(self.channel, *data)

    def element(self, element_id: str) -> WebElement:
        return self.browser.find_element(By.ID, element_id)

    def texts(self, selector: str) -> list[str]:
        """Texts of what is visible, read at one moment."""
        script = """
            return [...document.querySelectorAll(arguments[0])]
                .filter((element) => element.checkVisibility())
                .map((element) => element.textContent.trim());
        """
        found: list[str] = self.browser.execute_script(script, selector)
        return found

    @property
    def state(self) -> str:
        return str(self.element("tail-state").get_attribute("data-state"))

    @property
    def data(self) -> list[str]:
        """The data in the tail, newest first."""
        return self.texts("#tail-list pre")

    @property
    def kinds(self) -> list[str]:
        """What kinds of entries are in the tail, newest first."""
        script = (
            "return [...document.querySelectorAll('#tail-list > li')].map((e) => e.dataset.kind)"
        )
        found: list[str] = self.browser.execute_script(script)
        return found

    def note(self, kind: str) -> str:
        [text] = self.texts(f'#tail-list [data-kind="{kind}"]')
        return text
