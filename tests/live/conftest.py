"""Fixtures of the live tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.application import Application


@pytest.fixture(scope="session")
def shared_application() -> Iterator[Application]:
    """One application for all tests, so that the servers that ask it can be shared."""
    application = Application()
    yield application
    application.stop()


@pytest.fixture
def application(shared_application: Application) -> Application:
    """The application that endpoints belong to, as if new."""
    shared_application.reset()
    return shared_application
