"""What a listener gets while the service starts, or cannot serve."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.options import Config
from realtime.transports.streaming.application import EVENTS_PATH, response_when_away

PAGE = "https://example.org"


@pytest.mark.parametrize(
    ("path", "origin", "allowed", "status", "readable"),
    [
        (EVENTS_PATH, PAGE, None, 200, PAGE.encode()),
        (EVENTS_PATH, PAGE, (PAGE,), 200, PAGE.encode()),
        (EVENTS_PATH, "", (PAGE,), 200, None),
        (EVENTS_PATH, "https://elsewhere.example", (PAGE,), 403, None),
        ("/connection/sse", PAGE, None, 503, None),
    ],
)
def test_listener_of_an_allowed_page_learns_that_it_is_to_come_back(
    path: str, origin: str, allowed: Any, status: int, readable: bytes | None
) -> None:
    headers = [(b"origin", origin.encode())] if origin else []
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "headers": headers}
    response, fields = response_when_away(scope, Config(allowed_origins=allowed))
    assert (response.status, response.body.startswith(b"retry: ")) == (status, status == 200)
    assert dict(fields).get(b"access-control-allow-origin") == readable
    assert (b"no-store" in dict(fields).get(b"cache-control", b"")) is (status == 200)
