"""The fixtures for pytest. They are installed with the package, and load Django when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realtime.testing import Outbox, TestClient, TestService


@pytest.fixture
def realtime_outbox() -> Iterator[Outbox]:
    """The publications of the code under test, like the mails in `mailoutbox`."""
    from realtime.testing import capture

    with capture() as outbox:
        yield outbox


@pytest.fixture
def realtime_service() -> Iterator[TestService]:
    """The service with the memory engine, without a server."""
    from realtime.testing import TestService

    with TestService() as service:
        yield service


@pytest.fixture
def realtime_client(realtime_service: TestService) -> Callable[..., TestClient]:
    """Make clients of the service: `with realtime_client(user) as alice:`, or `async with`."""
    return realtime_service.client


@pytest.fixture
def realtime_settings() -> Iterator[Callable[..., None]]:
    """Set options of the service for one test: `realtime_settings(presence=True)`."""
    from django.conf import settings
    from django.test import override_settings

    with ExitStack() as stack:

        def change(**options: object) -> None:
            merged = {**getattr(settings, "REALTIME", {}), **options}
            stack.enter_context(override_settings(REALTIME=merged))

        yield change
