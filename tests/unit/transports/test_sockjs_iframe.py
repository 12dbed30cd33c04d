"""The iframe page of SockJS: whose it is, and what it runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest

from realtime.config.options import SOCKJS_SCRIPT
from realtime.config.reader import load, read
from realtime.transports.sockjs import iframe

ORIGINS = ["https://example.org", "https://*.example.org:*", "http://{a,b}.example.net:8000"]
ON: dict[str, Any] = {"sockjs_iframe": True, "allowed_origins": ORIGINS}


def page(**options: Any) -> iframe.IframePage:
    return iframe.page(load(ON | options))


def policy(**options: Any) -> dict[str, list[str]]:
    directives = [part.split(" ") for part in page(**options).policy.decode().split("; ")]
    return {name: sources for name, *sources in directives}


def test_policy_names_the_allowed_origins() -> None:
    assert policy()["frame-ancestors"] == [
        "'self'",
        "https://example.org",
        "https://*.example.org:*",
        "http://a.example.net:8000",
        "http://b.example.net:8000",
    ]


def test_policy_allows_the_library_and_the_script_of_the_page() -> None:
    [script] = re.findall(rb"<script>(.*?)</script>", page().content, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    assert policy()["script-src"] == [f"'sha256-{digest}'", SOCKJS_SCRIPT[0]]
    assert policy()["default-src"] == ["'none'"]
    assert policy(sockjs_url="/static/sockjs.js?a=1&b")["script-src"][1] == "'self'"


def test_library_of_another_host_has_its_integrity() -> None:
    named = page(sockjs_url="https://a.example/b.js?c&d", sockjs_integrity="sha384-abc").content
    url, integrity = SOCKJS_SCRIPT
    assert f'src="{url}" integrity="{integrity}"'.encode() in page().content
    assert b'src="https://a.example/b.js?c&amp;d" integrity="sha384-abc"' in named
    assert b"integrity" not in page(sockjs_url="/static/sockjs.js").content


@pytest.mark.parametrize(
    ("origin", "known"),
    [
        ("https://example.org", True),
        ("https://a.b.example.org:8443", True),
        ("http://a.example.net:8000", True),
        ("https://a.example.org", False),
        ("https://evil.example", False),
        ("https://example.org.evil.example", False),
        ("https://exampleXorg", False),
        ("https://evil.example/.example.org:1", False),
        ("null", False),
    ],
)
def test_page_hears_the_allowed_origins_only(origin: str, known: bool) -> None:
    [patterns] = re.findall(rb"var origins = (\[.*?\]).map", page().content)
    assert any(re.fullmatch(pattern, origin) for pattern in json.loads(patterns)) is known


def test_tag_depends_on_the_options() -> None:
    tags = {
        page().tag,
        page(sockjs_url="/static/sockjs.js").tag,
        page(allowed_origins=["https://example.org"]).tag,
    }
    assert len(tags) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"allowed_origins": None},
        {"allowed_origins": ["*"]},
        {"allowed_origins": ["https://*"]},
        {"allowed_origins": ["https://example.*"]},
        {"allowed_origins": ["https://[ab].example.org"]},
        {"allowed_origins": ["https://example.org; script-src *"]},
        {"sockjs_url": "https://a.example/sockjs.js"},
        {"sockjs_url": "//a.example/sockjs.js"},
        {"sockjs_url": "/a.js; script-src *"},
        {"sockjs_url": "javascript:alert(1)"},
    ],
    ids=str,
)
def test_page_that_could_serve_strangers_is_a_mistake(options: dict[str, Any]) -> None:
    _, problems = read({name: value for name, value in (ON | options).items() if value is not None})
    assert [problem.id for problem in problems] == ["E025"]
