"""What the tests of the kit share: options, a service, hooks of one test."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest
from django.db import connections

from realtime.hooks.registry import registry
from realtime.testing import TestService
from tests.answers.installing import installed

OPTIONS: dict[str, Any] = {
    "token_hmac_secret_key": "a secret of at least thirty-two bytes",
    "presence": True,
    "namespaces": [
        {
            "name": "chat",
            "publish": True,
            "presence": True,
            "join_leave": True,
            "history_size": 3,
            "history_lifetime": 300,
            "history_recover": True,
        },
        {"name": "seats", "map": "recoverable"},
    ],
}


@pytest.fixture(autouse=True, scope="module")
def closed_connections(django_db_blocker: Any) -> Iterator[None]:
    """What the tests of the kit opened in this thread is no concern of other tests."""
    yield
    with django_db_blocker.unblock():
        connections.close_all()


@pytest.fixture
def options(settings: Any) -> dict[str, Any]:
    """The options in force."""
    settings.REALTIME = OPTIONS
    return OPTIONS


@pytest.fixture
def service(options: dict[str, Any]) -> Iterator[TestService]:
    with TestService() as service:
        yield service


@pytest.fixture
def site() -> Iterator[None]:
    """Functions that this test registers are forgotten afterwards."""
    before = {name: copy(value) for name, value in vars(registry).items()}
    yield
    vars(registry).update(before)


@pytest.fixture
def answers_app() -> Iterator[None]:
    """What the app of answers adds to the service."""
    with installed():
        yield
