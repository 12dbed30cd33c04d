"""The console and the page of a user in a real browser: nothing reloads, the keyboard is enough."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser import console, wait_for
from tests.live.configurations import FORCED
from tests.live.panel_site import token_for
from tests.panel.paths import page_path
from tests.protocol_client import open_client
from tests.ready_site import ReadySite

Visit = Callable[..., None]


@pytest.fixture
def browser(staffed_browser: Chrome) -> Iterator[Chrome]:
    """The operator's browser; whatever its console says is an error, above all what was blocked."""
    yield staffed_browser
    logged = console(staffed_browser)
    staffed_browser.execute_script("sessionStorage.clear()")
    assert logged == []


@pytest.fixture
def visit(browser: Chrome, staffed_site: ReadySite) -> Visit:
    """Open a page by its name."""

    def visit(name: str, **query: object) -> None:
        browser.get(staffed_site.address + page_path(name, **query))

    return visit


CHANGES = {"publish", "broadcast", "unsubscribe", "disconnect", "history_remove"}
"""Methods about which the page asks."""


def type_command(browser: Chrome, method: str, params: str) -> None:
    Select(browser.find_element(By.NAME, "method")).select_by_value(method)
    field = browser.find_element(By.NAME, "params")
    field.clear()
    field.send_keys(params)


def run(browser: Chrome, method: str, params: str) -> None:
    """Run a command with the keyboard, and wait until it is the first of the last commands."""
    type_command(browser, method, params)
    browser.find_element(By.NAME, "params").send_keys(Keys.CONTROL, Keys.ENTER)
    if method in CHANGES:
        browser.find_element(By.CSS_SELECTOR, "#ask [data-action=run]").click()
    wait_for(browser, lambda: history(browser)[:1] == [(method, params)], f"{method} in the list")


def history(browser: Chrome) -> list[tuple[str, str]]:
    """The last commands, as the page lists them, read at one moment."""
    script = """
        return [...document.querySelectorAll("#history li")].map((item) =>
            [...item.querySelectorAll("code")].map((code) => code.textContent));
    """
    return [tuple(row) for row in browser.execute_script(script)]


def response(browser: Chrome) -> object:
    return json.loads(browser.find_element(By.ID, "response").text)


def focused(browser: Chrome) -> str:
    """The ID of what has the focus."""
    return str(browser.execute_script("return document.activeElement.id"))


async def test_command_is_answered_without_loading_the_page_again(
    browser: Chrome, visit: Visit, staffed_site: ReadySite, unique: str
) -> None:
    visit("console")
    browser.execute_script("window.neverLoadedAgain = true")
    channel = f"demo:{unique}"
    async with open_client(
        staffed_site.socket, token=token_for(staffed_site, unique, channel)
    ) as client:
        await client.push()  # that it joined

        run(browser, "publish", f'{{"channel": "{channel}", "data": {{"text": "hi"}}}}')

        assert (await client.publication())["data"] == {"text": "hi"}
    assert response(browser) == {"result": {}}
    assert browser.execute_script("return window.neverLoadedAgain")


def test_last_commands_are_kept_in_the_tab_fill_the_form_and_can_be_forgotten(
    browser: Chrome, visit: Visit
) -> None:
    visit("console")
    run(browser, "presence", '{"channel": "nope:x"}')
    run(browser, "info", "{}")
    visit("console")

    assert history(browser) == [("info", "{}"), ("presence", '{"channel": "nope:x"}')]
    browser.find_elements(By.CSS_SELECTOR, "#history li button")[1].click()

    assert Select(browser.find_element(By.NAME, "method")).first_selected_option.text == "presence"
    assert browser.find_element(By.NAME, "params").get_property("value") == '{"channel": "nope:x"}'
    assert browser.find_elements(By.ID, "response") == [], "it was run"
    browser.find_element(By.ID, "history-clear").click()
    assert not browser.find_element(By.ID, "history").is_displayed()
    visit("console")
    assert history(browser) == []


async def test_command_that_was_not_confirmed_is_not_run(
    browser: Chrome, visit: Visit, staffed_site: ReadySite, unique: str
) -> None:
    visit("console")
    async with open_client(staffed_site.socket, token=token_for(staffed_site, unique)) as client:
        type_command(browser, "disconnect", f'{{"user": "{unique}"}}')
        browser.find_element(By.NAME, "params").send_keys(Keys.CONTROL, Keys.ENTER)
        question = browser.find_element(By.ID, "ask")
        assert unique in question.text
        browser.switch_to.active_element.send_keys(Keys.ENTER)  # on Cancel

        run(browser, "info", "{}")

        assert await client.result("ping") == {}
    assert history(browser) == [("info", "{}")]


def test_method_brings_its_example_and_leaves_what_was_typed(browser: Chrome, visit: Visit) -> None:
    visit("console")
    field = browser.find_element(By.NAME, "params")
    methods = Select(browser.find_element(By.NAME, "method"))

    methods.select_by_value("disconnect")
    assert field.get_property("value") == '{"user": "42"}'
    assert "Disconnect all connections" in browser.find_element(By.ID, "console-meaning").text
    field.send_keys(" ")
    methods.select_by_value("presence")

    assert field.get_property("value") == '{"user": "42"} '


def test_params_that_are_no_json_are_refused_where_they_were_typed(
    browser: Chrome, visit: Visit
) -> None:
    visit("console")
    run(browser, "info", "{}")
    type_command(browser, "presence", '{"channel": }')

    browser.find_element(By.CSS_SELECTOR, "#console-form [type=submit]").click()

    def refused() -> bool:
        return "line 1, column 13" in browser.find_element(By.CLASS_NAME, "field-params").text

    wait_for(browser, refused, "the refusal")
    assert focused(browser) == "id_params"
    assert browser.find_elements(By.ID, "response") == [], "the answer to another command"
    assert history(browser) == [("info", "{}")]
    field = browser.find_element(By.NAME, "params")
    assert field.get_attribute("aria-invalid") == "true"
    described = str(field.get_attribute("aria-describedby")).split()
    assert "line 1, column 13" in browser.find_element(By.ID, described[0]).text
    run(browser, "channels", "{}")
    assert field.get_attribute("aria-invalid") is None
    assert "line 1" not in browser.find_element(By.CLASS_NAME, "field-params").text


async def test_user_is_found_and_disconnected_with_the_keyboard_only(
    browser: Chrome, visit: Visit, staffed_site: ReadySite, unique: str
) -> None:
    visit("user")
    async with open_client(staffed_site.socket, token=token_for(staffed_site, unique)) as client:
        browser.find_element(By.ID, "find-user").send_keys(unique, Keys.ENTER)
        wait_for(browser, lambda: client.client in browser.page_source, "the connection")

        def press(key: str, until: str) -> None:
            for _ in range(60):
                if focused(browser) == until:
                    outline = browser.switch_to.active_element.value_of_css_property("outline")
                    assert "none" not in outline, f"the focus on {until} is not seen"
                    return
                browser.switch_to.active_element.send_keys(key)
            raise AssertionError(f"the key does not lead to {until}")

        press(Keys.TAB, until="user-disconnect")
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        wait_for(browser, lambda: "Disconnect this user?" in browser.page_source, "the question")
        press(Keys.TAB, until="do")
        # the client answers in this test's event loop, which the browser would hold up
        sending = asyncio.to_thread(browser.switch_to.active_element.send_keys, Keys.ENTER)
        _, closed = await asyncio.gather(sending, client.closed())

    assert closed == FORCED
    wait_for(browser, lambda: "is not connected at the moment" in browser.page_source, "the page")
