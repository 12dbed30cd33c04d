"""The ready site with the panel at its root, and whoever signs in to it with the password."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.panel.standalone_parts import ADMIN_SECRET, COOKIE, PASSWORD, SIGN_IN, new_address
from tests.ready_site import migrate
from tests.server import API_KEY, SECRET, Server

Serve = Callable[..., Server]


def data_directory(factory: pytest.TempPathFactory) -> Path:
    """Where the sites of this test run keep their data, migrated."""
    directory = factory.getbasetemp() / "standalone-site"
    migrate(directory)
    return directory


def serve_panel(
    serve: Serve, factory: pytest.TempPathFactory, *, server: str = "daphne", **variables: str
) -> Server:
    """Start, or find, the ready site with its panel behind one reverse proxy.

    Args:
        variables: environment variables in place of the usual ones.
    """
    environment = {
        "DJANGO_SETTINGS_MODULE": "messaging_project.settings",
        "DJANGO_DEMO": "true",
        "DJANGO_DATA_DIR": str(data_directory(factory)),
        "SERVICE_API_KEY": API_KEY,
        "SERVICE_TOKEN_HMAC_SECRET_KEY": SECRET,
        "SERVICE_ADMIN": "true",
        "SERVICE_ADMIN_PASSWORD": PASSWORD,
        "SERVICE_ADMIN_SECRET": ADMIN_SECRET,
        "SERVICE_ADMIN_TRUSTED_PROXIES": "1",
    }
    return serve(
        server=server,
        application="messaging_project.asgi:application",
        environment=environment | variables,
    )


@contextmanager
def visitor(
    server: Server,
    address: str | None = None,
    *,
    follow: bool = True,
    cookies: Mapping[str, str] | None = None,
) -> Iterator[httpx.Client]:
    """A browser without JavaScript, from an address of its own."""
    headers = {"X-Forwarded-For": address or new_address()}
    with httpx.Client(
        base_url=server.address,
        headers=headers,
        cookies=dict(cookies or {}),
        follow_redirects=follow,
        timeout=30,
        verify=False,  # the certificate is made anew for every server
    ) as browser:
        yield browser


def send(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form, as its page would."""
    if "csrftoken" not in browser.cookies:
        browser.get(SIGN_IN)
    fields["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
    origin = str(browser.base_url).rstrip("/")
    return browser.post(path, data=fields, headers={"Origin": origin})


def sign_in(browser: httpx.Client, password: str = PASSWORD, **fields: str) -> httpx.Response:
    """Give a password, as a person would."""
    return send(browser, SIGN_IN, password=password, **fields)


def is_open(browser: httpx.Client, path: str = "/channels/") -> bool:
    """Whether a page of the panel is shown; otherwise the sign-in page must be."""
    response = browser.get(path, follow_redirects=True)
    assert response.status_code == 200
    shown = response.url.path == path
    assert shown or response.url.path == SIGN_IN
    return shown


def cookie_of(browser: httpx.Client) -> str:
    """The session that a browser holds."""
    value: Any = browser.cookies[COOKIE]
    assert isinstance(value, str)
    return value
