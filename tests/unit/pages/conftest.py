"""The service and the site of all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import override_settings

from realtime.pages import page_positions
from realtime.testing import TestService
from tests.unit.pages import site
from tests.unit.pages.parts import MIDDLEWARE, OPTIONS


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestService]:
    """The service, and a site with the middleware. No page of an earlier test failed."""
    monkeypatch.setattr(page_positions, "_reader", page_positions._Reader())
    with (
        override_settings(REALTIME=OPTIONS, ROOT_URLCONF=site.__name__, MIDDLEWARE=MIDDLEWARE),
        TestService() as started,
    ):
        yield started
    cache.clear()
