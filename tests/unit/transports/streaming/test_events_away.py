"""What a listener gets while the service starts, or cannot serve."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.options import Config
from realtime.transports.streaming.application import EVENTS_PATH, response_when_away

PAGE = "https://example.org"


def request(path: str = EVENTS_PATH, origin: str = "") -> dict[str, Any]:
    headers = [(b"origin", origin.encode())] if origin else []
    return {"type": "http", "method": "GET", "path": path, "headers": headers}


@pytest.mark.parametrize("allowed", [None, (PAGE,)])
def test_page_of_another_origin_learns_that_it_is_to_come_back(
    allowed: tuple[str, ...] | None,
) -> None:
    response, headers = response_when_away(request(origin=PAGE), Config(allowed_origins=allowed))
    assert (response.status, response.body[:7]) == (200, b"retry: ")
    assert dict(headers)[b"access-control-allow-origin"] == PAGE.encode()
    assert b"no-store" in dict(headers)[b"cache-control"]


def test_page_of_an_origin_that_is_not_allowed_is_refused() -> None:
    elsewhere = request(origin="https://elsewhere.example")
    response, headers = response_when_away(elsewhere, Config(allowed_origins=(PAGE,)))
    assert (response.status, list(headers)) == (403, [])


def test_listener_without_an_origin_is_to_come_back() -> None:
    response, headers = response_when_away(request(), Config(allowed_origins=(PAGE,)))
    assert response.status == 200
    assert [name for name, _ in headers if name.startswith(b"access-control")] == []


def test_other_transports_are_unavailable() -> None:
    assert response_when_away(request("/connection/sse", PAGE), Config())[0].status == 503
