"""When a page is of the same origin as the service it connects to."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from realtime.config.reader import read
from realtime.hooks import login
from realtime.hooks.login import is_same_origin, is_secure, is_trusted
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import Caller, Handshake, Hooks
from realtime.transports.handshake import handshake

SAME = [
    ("http://site.example", "site.example"),
    ("http://site.example:80", "site.example"),
    ("http://site.example", "site.example:80"),
    ("https://site.example", "site.example:443"),
    ("https://site.example:443", "site.example"),
    ("http://site.example:8000", "site.example:8000"),
    ("https://SITE.example", "site.EXAMPLE"),
    ("http://[::1]:8000", "[::1]:8000"),
]

OTHER = [
    ("https://other.example", "site.example"),
    ("https://site.example.other.example", "site.example"),
    ("https://other.example/site.example", "site.example"),
    ("https://site.example@other.example", "site.example"),
    ("https://other.example#site.example", "site.example"),
    ("https://sub.site.example", "site.example"),
    ("http://localhost:8000", "127.0.0.1:8000"),
    ("http://127.0.0.1", "127.0.0.1:8000"),
    ("http://site.example:8000", "site.example:8001"),
    ("http://site.example:8000", "site.example"),
    ("http://site.example", "site.example:443"),
    ("https://site.example", "site.example:80"),
    ("https://site.example", ""),
    ("null", ""),
    ("null", "null"),
    ("", ""),
    ("", "site.example"),
    ("site.example", "site.example"),
    ("http://", ""),
    ("http://[", "["),
    ("file://", ""),
]


@pytest.mark.parametrize(("page", "host"), SAME)
def test_page_of_the_same_origin_is_known(page: str, host: str) -> None:
    assert is_same_origin(page, host)


@pytest.mark.parametrize(("page", "host"), OTHER)
def test_page_of_another_origin_is_known(page: str, host: str) -> None:
    assert not is_same_origin(page, host)


def test_host_that_is_not_this_site_s_has_no_same_origin(settings: Settings) -> None:
    """A page can name any host of its own, if it makes that name lead here."""
    settings.ALLOWED_HOSTS = [".site.example"]
    assert is_same_origin("https://site.example", "site.example")
    assert is_same_origin("https://www.site.example:8000", "www.site.example:8000")
    assert not is_same_origin("https://evil.example", "evil.example")


def test_local_hosts_are_this_site_s_while_it_is_developed(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = []
    settings.DEBUG = True
    assert is_same_origin("http://localhost:8000", "localhost:8000")
    assert not is_same_origin("http://evil.example:8000", "evil.example:8000")


@pytest.mark.parametrize(
    ("scheme", "expected"), [("wss", True), ("https", True), ("ws", None), (None, None)]
)
def test_server_that_ends_tls_says_so(scheme: str | None, expected: bool | None) -> None:
    scope: dict[str, Any] = {"headers": []} | ({} if scheme is None else {"scheme": scheme})
    assert is_secure(handshake(Hooks(), scope, None)) is expected


def test_page_without_tls_is_another_origin_where_sessions_travel_by_tls_only(
    settings: Settings,
) -> None:
    """Who can change what travels without TLS could make any page of the host."""
    settings.SESSION_COOKIE_SECURE = True
    assert not is_same_origin("http://site.example", "site.example")
    assert is_same_origin("https://site.example", "site.example")


@pytest.mark.parametrize(
    "patterns",
    [["https://elsewhere.example"], ["https://*.example"], ["*", "https://e*"], ["*elsewhere*"]],
    ids=repr,
)
def test_page_of_an_origin_that_a_pattern_names_is_trusted(patterns: list[str]) -> None:
    assert is_trusted("https://elsewhere.example", "site.example", patterns)


@pytest.mark.parametrize(
    "patterns",
    [None, [], ["*"], ["**"], ["https://*"], ["http?://*", "*://*"], ["https://*:443"], ["h*://*"]],
    ids=repr,
)
def test_page_is_not_believed_because_of_a_pattern_for_everything(
    patterns: list[str] | None,
) -> None:
    for page in ("https://elsewhere.example", "https://elsewhere.example:443", "null"):
        assert not is_trusted(page, "site.example", patterns)
    assert is_trusted("https://site.example", "site.example", patterns)
    assert is_trusted(None, "site.example", patterns)


@pytest.mark.parametrize(
    "pattern",
    [
        *("*", "https://*", "http*", "https:*", "[h]*", "{https://site.example,*}"),
        *("https://*:[0-9]*", "https://[a-z]*", "https://*:{443,8443}"),
    ],
)
@pytest.mark.parametrize("page", ["https://evil.example", "https://evil.example:8443"])
def test_pattern_that_matches_any_host_hands_out_no_session(pattern: str, page: str) -> None:
    assert not is_trusted(page, "site.example", [pattern])


@pytest.mark.parametrize(
    "pattern",
    ["https://shop.example", "https://*.example", "http*://shop.example", "https://shop.example:*",
     "https://{shop,www}.example", "https://[a-z]hop.example"],
)  # fmt: skip
def test_pattern_that_names_a_host_lets_its_pages_use_the_session(pattern: str) -> None:
    page = "https://shop.example" + (":8443" if pattern.endswith(":*") else "")
    assert is_trusted(page, "site.example", [pattern])


# which page is of this site behind a reverse proxy: host and scheme as Django knows them


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
    return handshake(hooks, scope, None)


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
