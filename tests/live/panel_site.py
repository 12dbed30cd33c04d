"""The ready site as an operator uses it: signing in, with and without JavaScript."""

from __future__ import annotations

from contextlib import AsyncExitStack

import httpx
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from realtime.auth import issue
from realtime.config.options import Config
from realtime.config.reader import load
from tests.browser import wait_for
from tests.protocol_client import ProtocolClient, open_client
from tests.ready_site import ReadySite

OPERATOR = "operator"
PASSWORD = "long enough for a test"
"""Of users whom the tests make."""


def sign_in(address: str, password: str, user: str = OPERATOR) -> httpx.Client:
    """A browser without JavaScript in which a user is signed in; the caller closes it."""
    browser = log_in(address, password, user)
    assert "sessionid" in browser.cookies
    return browser


def log_in(address: str, password: str, user: str) -> httpx.Client:
    """A browser in which somebody tried to sign in, whether they may or not."""
    browser = httpx.Client(base_url=address, follow_redirects=True, timeout=30)
    browser.get("/admin/login/")
    fields = {
        "username": user,
        "password": password,
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
    }
    browser.post("/admin/login/", data=fields)
    return browser


def sign_in_browser(browser: Chrome, address: str, password: str) -> None:
    """Sign the operator in, as a person would; cookies go to every server of this host."""
    browser.get(f"{address}/admin/login/")
    browser.find_element(By.NAME, "username").send_keys(OPERATOR)
    browser.find_element(By.NAME, "password").send_keys(password + "\n")
    wait_for(browser, lambda: browser.find_elements(By.ID, "logout-form"), "signed in")


def config_of(site: ReadySite) -> Config:
    """The configuration that makes the site's tokens."""
    return load({"token_hmac_secret_key": site.secret("token_hmac_secret_key")})


def token_for(site: ReadySite, user: str, *channels: str) -> str:
    """A connection token of the site that subscribes its user to these channels."""
    return issue.connection_token(config_of(site), user, channels=channels)


class Guests:
    """Opens clients that are subscribed from the start; they leave with the stack."""

    def __init__(self, socket: str, config: Config, stack: AsyncExitStack) -> None:
        """`config`: what makes the tokens of that server."""
        self._socket = socket
        self._config = config
        self._stack = stack

    async def open(self, user: str, *channels: str, info: object = None) -> ProtocolClient:
        token = issue.connection_token(self._config, user, channels=channels, info=info)
        # they need not read what others' joins tell them
        client = open_client(self._socket, token=token, max_queue=None)
        return await self._stack.enter_async_context(client)
