"""Which page is of this site behind a reverse proxy: host and scheme as Django knows them."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from realtime.config.reader import read
from realtime.hooks import login
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import Caller, Handshake
from realtime.transports.handshake import handshake

PAGE = "https://site.example"


def opened(hooks: SiteHooks, **headers: str) -> Handshake:
    """Return the handshake of a page of the site, as the reverse proxy passes it on."""
    given = {
        "host": "127.0.0.1:8000",
        "origin": PAGE,
        "cookie": "sessionid=of-user-17",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    scope: Any = {"headers": [(name.encode(), text.encode()) for name, text in given.items()]}
    return handshake(scope, "json", None, site_headers=hooks.site_headers)


def hooks_of_a_site() -> SiteHooks:
    return SiteHooks(read({"session_authentication": True})[0], Registry())


def trusts(**headers: str) -> bool:
    hooks = hooks_of_a_site()
    return bool(hooks.auth_session_of(opened(hooks, **headers)))


def test_host_that_the_proxy_replaced_counts_only_if_django_believes_it(settings: Settings) -> None:
    assert not trusts(x_forwarded_host="site.example")
    settings.USE_X_FORWARDED_HOST = True
    assert trusts(x_forwarded_host="site.example")
    assert trusts(host="site.example")
    assert not trusts(host="site.example", x_forwarded_host="other.example")


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("https", True),
        ("wss", True),
        ("https, http", True),
        ("http", False),
        ("ws", False),
        ("", False),
    ],
    ids=repr,
)
def test_scheme_is_that_of_the_header_which_django_believes(
    settings: Settings, scheme: str, expected: bool
) -> None:
    assert trusts(host="site.example", x_forwarded_proto=scheme)
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert trusts(host="site.example", x_forwarded_proto=scheme) is expected
    assert trusts(host="site.example")


def test_hooks_and_proxies_do_not_get_these_headers(settings: Settings) -> None:
    settings.USE_X_FORWARDED_HOST = True
    assert "x-forwarded-host" not in opened(hooks_of_a_site(), x_forwarded_host="a").headers


def test_every_hook_may_read_cookies_so_only_pages_of_the_site_use_them() -> None:
    hooks = SiteHooks(read({})[0], Registry())
    own, other = {"origin": PAGE}, {"origin": "https://elsewhere.example"}
    assert hooks.trusts_page(Handshake(own, PAGE.removeprefix("https://"), is_secure=True))
    assert not hooks.trusts_page(Handshake(other, PAGE.removeprefix("https://"), is_secure=True))
    assert SiteHooks(
        read({"allowed_origins": ["https://elsewhere.example"]})[0], Registry()
    ).trusts_page(Handshake(other, "site.example"))


async def test_log_says_which_origin_and_host_differ(caplog: pytest.LogCaptureFixture) -> None:
    hooks = hooks_of_a_site()
    assert await hooks.connect(Caller("C", "", opened(hooks)), b"", "", "") is None
    [record] = caplog.records
    assert record.name == login.logger.name
    assert f"origin {PAGE!r}" in record.getMessage()
    assert "is '127.0.0.1:8000'" in record.getMessage()
