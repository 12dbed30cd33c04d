"""The REST framework view in a process whose event loop does not get to the commands."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from api.views import CommandView
from realtime.serving import serving
from realtime.testing import TestService


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
