"""The log of the panel in a real browser: an operator's question, and its answer in few clicks."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import console, wait_for
from tests.live.panel_staff import Staff
from tests.live.publish_page import send
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

MOST_CLICKS = 5


def yesterday(site: ReadySite, word: str) -> None:
    """Put the entries about a word a day back."""
    with closing(sqlite3.connect(site.directory / "db.sqlite3")) as database, database:
        database.execute(
            "UPDATE django_admin_log SET action_time = datetime(action_time, '-1 day')"
            " WHERE object_id LIKE ?",
            (f"%{word}%",),
        )


def test_what_was_published_by_whom_yesterday(
    staffed_browser: Chrome, staffed_site: ReadySite, staff: Staff, unique: str
) -> None:
    send(staff["editor"], f"{unique} demo:{unique}", f'{{"text": "{unique}-yesterday"}}')
    yesterday(staffed_site, unique)
    send(staff["operator"], unique, f'"{unique}-today"')
    browser = staffed_browser
    browser.get(staffed_site.address + page_path("overview"))
    clicks = 0

    def click(selector: str, word: str) -> None:
        nonlocal clicks
        clicks += 1
        [link] = [
            each for each in browser.find_elements(By.CSS_SELECTOR, selector) if each.text == word
        ]
        link.click()
        wait_for(browser, lambda: browser.find_elements(By.ID, "log-filter"), "the log")

    click(".panel-tabs a", "Log")
    click(".panel-jump a", "Yesterday")
    found = browser.find_elements(By.CSS_SELECTOR, "#log tbody tr")

    [row] = [row.text for row in found if unique in row.text]
    assert "editor" in row
    assert f"demo:{unique}" in row
    assert f"{unique}-yesterday" in row
    assert clicks <= MOST_CLICKS

    again = browser.find_element(By.XPATH, f"//tr[contains(., '{unique}')]//a[.='Publish again']")
    again.click()
    wait_for(browser, lambda: browser.find_elements(By.NAME, "data"), "the form")
    form = browser.find_element(By.ID, "publish-form")
    values = [
        form.find_element(By.NAME, name).get_property("value") for name in ("channel", "data")
    ]
    assert values == [f"{unique}\ndemo:{unique}", f'{{"text": "{unique}-yesterday"}}']
    assert console(browser) == []
