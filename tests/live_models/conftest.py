"""The service of all tests of live HTML, with the memory engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from realtime.testing import TestService

KEPT = {"history_size": 1000, "history_lifetime": 100, "force_recovery": True}
OPTIONS = {
    "token_hmac_secret_key": "a secret of at least thirty-two bytes",
    "page_margin": 0,
    "namespaces": [
        {"name": "order", **KEPT},
        {"name": "team", **KEPT},
        {"name": "plain"},
    ],
}


@pytest.fixture(autouse=True)
def service(settings: Any) -> Iterator[TestService]:
    """The service of a site with channels for rows."""
    settings.REALTIME = OPTIONS
    with TestService() as started:
        yield started
