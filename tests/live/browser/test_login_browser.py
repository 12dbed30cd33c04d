"""Session login in a real browser: the page that Django logged in receives, until logout."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import console, renew, wait_for
from tests.live.hooks_site import OPTIONS, PASSWORD, create_user, environment
from tests.server import Server


@pytest.fixture
def browser(shared_browser: Chrome) -> Chrome:
    """A browser in which nobody is logged in."""
    renew(shared_browser)
    return shared_browser


def text(browser: Chrome, element: str) -> str:
    return browser.find_element(By.ID, element).text


def until_state(browser: Chrome, state: str) -> None:
    wait_for(browser, lambda: text(browser, "state") == state, state)


def test_page_receives_until_its_visitor_logs_out_in_another_tab(
    serve: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
    browser: Chrome,
    unique: str,
) -> None:
    server = serve(environment=environment(tmp_path_factory), **OPTIONS)
    username, pk = create_user(server, unique)
    channel = f"news%23{pk}"  # only this user may subscribe

    browser.get(f"{server.address}/?channel={channel}")
    browser.find_element(By.NAME, "username").send_keys(username)
    browser.find_element(By.NAME, "password").send_keys(PASSWORD)
    browser.find_element(By.ID, "submit").click()
    wait_for(browser, lambda: text(browser, "user") == username, "the page")
    until_state(browser, "subscribed")

    server.publish(f"news#{pk}", {"text": f"hello {unique}"})
    wait_for(browser, lambda: text(browser, "log") == f"hello {unique}", "the message")

    page = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{server.address}/?channel={channel}")
    until_state(browser, "subscribed")
    browser.find_element(By.ID, "logout").click()
    wait_for(browser, lambda: "/login" in browser.current_url, "the login form")

    browser.switch_to.window(page)
    until_state(browser, "closed 3012")
    assert console(browser) == []


def test_page_of_another_origin_cannot_use_the_session(
    serve: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
    browser: Chrome,
) -> None:
    """The cookie belongs to the host whatever the port, so a browser sends it along."""
    made = environment(tmp_path_factory)
    server, other = serve(environment=made, **OPTIONS), serve()
    username, pk = create_user(server)
    browser.get(f"{server.address}/login?next=/%3Fchannel=news%2523{pk}")
    browser.find_element(By.NAME, "username").send_keys(username)
    browser.find_element(By.NAME, "password").send_keys(PASSWORD)
    browser.find_element(By.ID, "submit").click()
    until_state(browser, "subscribed")

    browser.get(f"{other.address}/hello")
    script = """
        const [url, done] = arguments;
        const socket = new WebSocket(url);
        socket.onopen = () => socket.send('{"id": 1, "method": 0}');
        socket.onmessage = ({ data }) => done(data);
        socket.onclose = ({ code }) => done(code);
    """

    assert browser.execute_async_script(script, server.socket) == 3003
