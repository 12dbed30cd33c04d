"""What operators are asked for, done in a browser by a script: each in five clicks at most.

The site keeps one browser and one operator; clients are connected as guests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import console, wait_for
from tests.live.configurations import FORCED
from tests.live.panel_site import Guests
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

MOST_CLICKS = 5


class Desk:
    """An operator at the panel, whose clicks are counted."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self._browser = browser
        self._address = address
        self.clicks = 0

    def begin(self) -> None:
        """Open the overview, where each task begins."""
        self._browser.get(self._address + page_path("overview"))

    def click(self, selector: str) -> None:
        wait_for(
            self._browser,
            lambda: self._browser.find_element(By.CSS_SELECTOR, selector).is_displayed(),
            selector,
        )
        self._browser.find_element(By.CSS_SELECTOR, selector).click()
        self.clicks += 1

    def tab(self, name: str) -> None:
        self.click(f'.panel-tabs a[href$="/{name}/"]')

    def type(self, field: str, text: str) -> None:
        """Type into a field, and send the form with Enter."""
        wait_for(self._browser, lambda: self._browser.find_element(By.ID, field), field)
        self._browser.find_element(By.ID, field).send_keys(text)

    def sees(self, selector: str, text: str) -> None:
        def seen() -> bool:
            # in one step: the next page may have the same element, and take its place
            script = "return document.querySelector(arguments[0])?.innerText ?? ''"
            return text in str(self._browser.execute_script(script, selector))

        wait_for(self._browser, seen, f"{text!r} in {selector}")

    def begins_in(self, field: str) -> None:
        """Check that a page opens with the focus in a field."""

        def focused() -> bool:
            return bool(self._browser.switch_to.active_element.get_attribute("id") == field)

        wait_for(self._browser, focused, f"focus in {field}")


@pytest.fixture
def desk(staffed_browser: Chrome, staffed_site: ReadySite) -> Iterator[Desk]:
    desk = Desk(staffed_browser, staffed_site.address)
    desk.begin()
    yield desk
    assert console(staffed_browser) == []
    assert desk.clicks <= MOST_CLICKS


async def test_user_gets_nothing_and_why(desk: Desk, guests: Guests, unique: str) -> None:
    client = await guests.open(unique)
    await client.error("subscribe", {"channel": "$private"})
    desk.tab("user")
    desk.begins_in("find-user")
    desk.type("find-user", unique + "\n")
    desk.sees("#user-refusals", "$private")
    desk.click("#user-refusals .panel-action")
    desk.sees("#why-checks [data-outcome=refused]", "The channel is private")


async def test_user_is_kicked_everywhere_and_blocked(
    desk: Desk, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique)
    desk.tab("user")
    desk.type("find-user", unique + "\n")
    desk.click("#user-block")
    desk.click("#do")
    desk.sees("#user-is-blocked", "The user is blocked until")
    assert await client.closed() == FORCED


def test_option_that_forbids_something_is_found(desk: Desk, unique: str) -> None:
    desk.tab("why")
    desk.begins_in("why-user")
    desk.type("why-user", unique)
    desk.type("why-channel", "news\n")
    desk.sees("#why-checks [data-outcome=refused]", "publish")
    desk.click("#why-checks [data-outcome=refused] a")
    desk.sees("tr:target", "publish")


def test_service_is_healthy_or_the_first_line_says_why_not(desk: Desk) -> None:
    desk.sees(".panel-health", "since")
    desk.sees('[data-chart="published"]', "Published per second")


async def test_json_is_sent_to_five_channels_after_a_look_at_what_it_reaches(
    desk: Desk, guests: Guests, unique: str
) -> None:
    channels = [f"{unique}-{number}" for number in range(5)]
    await guests.open(unique, *channels[:2])
    desk.tab("publication")
    desk.type("id_channel", "\n".join(channels))
    desk.type("id_data", '{"text": "hello"}')
    desk.sees("#reach", "2 subscribers")
    desk.click("#publish-form .submit-row .default")
    desk.sees(".messagelist", "Published into 5 channels")


async def test_busiest_channels_are_found(desk: Desk, guests: Guests, unique: str) -> None:
    for number, user in ((1, "a"), (2, "b"), (2, "c")):
        await guests.open(f"{unique}-{user}", f"{unique}-{number}")
    desk.tab("channels")
    desk.type("q", unique)
    desk.click("#sort option[value=subscribers]")
    desk.click(".panel-toolbar [type=submit]")
    desk.sees("#channels tbody tr:first-child", f"{unique}-2")
    desk.sees("#channels tbody tr:nth-child(2)", f"{unique}-1")


async def test_channel_is_watched_and_the_tail_is_stopped(
    desk: Desk, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique, f"demo:{unique}")

    desk.tab("channels")
    desk.type("q", f"{unique}\n")
    desk.click("#channels th a")
    desk.sees("#tail-state", "Live")
    await client.result("publish", {"channel": f"demo:{unique}", "data": "watched"})
    desk.sees("#tail-list", "watched")
    desk.click("#tail-pause")

    desk.sees("#tail-state", "Paused")


async def test_frames_of_a_user_are_watched(desk: Desk, guests: Guests, unique: str) -> None:
    client = await guests.open(unique)

    desk.tab("user")
    desk.type("find-user", unique + "\n")
    desk.click("#user-frames")
    desk.click("#do")
    desk.sees("#frames-list", "was connected")
    await client.error("subscribe", {"channel": "$private"})

    desk.sees("#frames-list", "permission denied")
    desk.click("#frames-stop [type=submit]")
    desk.sees(".panel-subject", unique)
