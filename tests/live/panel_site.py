"""The ready site as an operator uses it: signing in, with and without JavaScript."""

from __future__ import annotations

from urllib.parse import urlencode

import httpx
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from realtime.options_reader import load
from realtime.tokens import issue
from tests.browser import wait_for
from tests.ready_site import ReadySite

OPERATOR = "operator"
ROOT = "/admin/realtime_admin/"


def page_path(name: str, **query: object) -> str:
    """The path of a page in the Django admin."""
    return f"{ROOT}{name}/" + (f"?{urlencode(query)}" if query else "")


def sign_in(address: str, password: str, user: str = OPERATOR) -> httpx.Client:
    """A browser without JavaScript in which a user is signed in; the caller closes it."""
    browser = httpx.Client(base_url=address, follow_redirects=True, timeout=30)
    browser.get("/admin/login/")
    fields = {
        "username": user,
        "password": password,
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
    }
    browser.post("/admin/login/", data=fields)
    assert "sessionid" in browser.cookies
    return browser


def sign_in_browser(browser: Chrome, site: ReadySite) -> None:
    """Sign the operator in, as a person would."""
    browser.get(f"{site.address}/admin/login/")
    browser.find_element(By.NAME, "username").send_keys(OPERATOR)
    browser.find_element(By.NAME, "password").send_keys(site.password + "\n")
    wait_for(browser, lambda: browser.find_elements(By.ID, "logout-form"), "signed in")


def token_for(site: ReadySite, user: str, *channels: str) -> str:
    """A connection token of the site that subscribes its user to these channels."""
    config = load({"token_hmac_secret_key": site.secret("token_hmac_secret_key")})
    return issue.connection_token(config, user, channels=channels)
