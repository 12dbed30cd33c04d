"""Fixtures of the tests of endpoints."""

from __future__ import annotations

import pytest

from realtime.proxy import client as client_module
from tests.unit.proxy.endpoint_site import Site


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site()
    monkeypatch.setattr(client_module, "ProxyClient", lambda: site)
    return site
