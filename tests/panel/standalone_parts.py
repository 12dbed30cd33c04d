"""The panel by itself: its options, paths and addresses to come from."""

from __future__ import annotations

import time
from itertools import count

from django.test import Client

from admin_panel.pages import PAGES
from admin_panel.standalone.limiter import WINDOW
from realtime.config.reader import load
from tests.server import wait_until

PASSWORD = "correct horse battery"
ADMIN_SECRET = "signs the sessions of the panel, and nothing else"
ON = {
    "admin": True,
    "admin_password": PASSWORD,
    "admin_secret": ADMIN_SECRET,
    "trusted_proxies": 1,
}
CONFIG = load(ON)

COOKIE = "realtime_operator_token"
SIGN_IN = "/sign-in/"
SIGN_OUT = "/sign-out/"

PATHS = ["/" if page.name == "overview" else f"/{page.path}" for page in PAGES]

_addresses = count(1)


def begin_counting() -> None:
    """Wait until attempts that follow in the next seconds are counted together."""
    wait_until(lambda: time.time() % WINDOW < WINDOW - 10, 15, "a window with time left")


def new_address() -> str:
    """Return an address nobody else comes from, of those that are for documentation."""
    return f"2001:db8:0:{next(_addresses):x}::1"


def is_open(client: Client, path: str = "/channels/") -> bool:
    """Whether a page is shown; otherwise its visitor is asked to sign in."""
    response = client.get(path)
    if response.status_code == 302:
        assert response["Location"].startswith(f"{SIGN_IN}?")
    else:
        assert response.status_code in (200, 503)
    return bool(response.status_code != 302)
