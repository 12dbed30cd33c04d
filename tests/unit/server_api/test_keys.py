"""Requests of the HTTP API: the key, statuses, an event loop that is busy."""

from __future__ import annotations

import json
import threading
from functools import partial

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from api.views import CommandView
from realtime.server_api import http, http_v2
from realtime.server_api.http import Head, is_key
from realtime.serving import serving
from realtime.testing import TestService
from tests.unit.parts import Clock
from tests.unit.transports.emulation.parts import open_node

KEY = "the-key-of-the-server-api"
ENCODED = "".join(f"%{ord(letter):02X}" for letter in KEY)
WRONG = [
    *("", "apikey wrong", f"apikey {KEY.upper()}", f"apikey {KEY[:-1]}", f"apikey {KEY}x"),
    *("apikey", KEY, f"Bearer {KEY}", f"apikey: {KEY}", f"apikey {KEY} x", f"apikey {KEY} {KEY}"),
    *(f'apikey "{KEY}"', "apikey \xe9"),
]


@pytest.mark.parametrize(
    ("key", "authorization", "is_right"),
    [
        *(
            (KEY, f"{scheme}{KEY}", True)
            for scheme in ("apikey ", "APIKEY ", "ApiKey   ", "apikey\t")
        ),
        *((KEY, value, False) for value in WRONG),
        ("two words", "apikey two words", True),
        ("two words", "apikey  two words ", True),
        ("two words", "apikey two  words", False),
        ("two words", "apikey two", False),
        ("two words", "apikey words", False),
        ("two words", "two words", False),
    ],
)
def test_key_in_the_header(key: str, authorization: str, is_right: bool) -> None:
    assert is_key(key, Head("POST", "", None, authorization)) is is_right


@pytest.mark.parametrize("query", ["", "api_key=", "api_key"])
@pytest.mark.parametrize("header", [None, "apikey", "apikey ", "apikey wrong"])
def test_without_the_option_no_key_is_right(query: str, header: str | None) -> None:
    assert not is_key("", Head("POST", query, None, header))


@pytest.mark.parametrize(
    ("query", "is_right"),
    [
        (f"api_key={KEY}", True),
        (f"a=1&b&api_key={KEY}", True),
        (f"api_key={KEY}&api_key=wrong", True),
        (f"api_key={ENCODED}", True),
        ("api_key=wrong", False),
        ("api_key=", False),
        ("api_key", False),
        (f"api_key=wrong&api_key={KEY}", False),
        (f"apikey={KEY}", False),
        (f"API_KEY={KEY}", False),
        (f"api_key=apikey+{KEY}", False),
        ("api_key=%FF", False),
    ],
)
@pytest.mark.parametrize("header", [None, "apikey wrong", "Basic abc"])
def test_key_in_the_query_counts_whatever_the_header_says(
    query: str, header: str | None, is_right: bool
) -> None:
    assert is_key(KEY, Head("POST", query, None, header)) is is_right


@pytest.mark.parametrize(("mode", "status"), [("", 200), ("transport", 404)])
async def test_option_says_whether_the_status_tells_errors(
    clock: Clock, mode: str, status: int
) -> None:
    async with open_node(clock, api_error_mode=mode) as node:
        head = http.Head("POST", "", None, None, None)
        response = await http_v2.handle(node, "publish", head, b'{"channel":"nope:a","data":1}')

    assert response.status == status
    body = json.loads(response.body)
    assert (body if mode else body["error"])["code"] == 102


def test_event_loop_that_is_busy_is_status_503(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REALTIME = {"api_key": "key"}
    monkeypatch.setattr(serving, "call_timeout", 0.05)
    request = RequestFactory().post(
        "/api",
        b'{"method": "info"}',
        content_type="application/json",
        headers={"Authorization": "apikey key"},
    )
    free = threading.Event()

    with TestService() as service:
        service.node.loop.call_soon_threadsafe(partial(free.wait, 10))
        try:
            response = CommandView.as_view()(request)
        finally:
            free.set()

    assert response.status_code == 503
    assert "did not answer in time" in caplog.text
