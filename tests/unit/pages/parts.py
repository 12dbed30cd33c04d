"""What tests of pages share: options, publications, requests, and what a page holds."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from django.http import HttpRequest
from django.test import RequestFactory

import realtime
from tests.server import SECRET

KEPT = {"history_size": 100, "history_lifetime": 100, "history_recover": True}
OPTIONS = {
    "token_hmac_secret_key": SECRET,
    "session_authentication": True,
    "page_margin": 0,
    "namespaces": [
        {"name": "orders", **KEPT},
        {"name": "plain"},
        {"name": "kept", "history_size": 100, "history_lifetime": 100},
    ],
}
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "realtime.pages.middleware.PositionMiddleware",
]


ELEMENT = re.compile(r"<script[^>]*data-realtime-channel[^>]*>(.*?)</script>", re.DOTALL)


def elements(html: str | bytes) -> list[dict[str, Any]]:
    text = html if isinstance(html, str) else html.decode()
    return [json.loads(found) for found in ELEMENT.findall(text)]


def publish_before(channel: str = "orders:42") -> dict[str, Any]:
    """Publish in a millisecond of its own."""
    wait_a_millisecond()
    position = realtime.publish(channel, "before")
    assert position is not None
    wait_a_millisecond()
    return {"channel": channel, "offset": position.offset, "epoch": position.epoch}


def wait_a_millisecond() -> None:
    begun = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= begun:
        pass


def request_begun(**scope: Any) -> HttpRequest:
    request = RequestFactory().get("/")
    request.scope = scope  # type: ignore[attr-defined]
    return request
