"""Fixtures of the panel's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings
from pytest_django import Settings

from admin_panel import past
from admin_panel.health import watch
from tests.panel.urls import HOMES, configure


@pytest.fixture(scope="module", autouse=True)
def _both_homes() -> Iterator[None]:
    """Serve the panel in both homes: once for a module, because Django then reads all URLs anew."""
    with override_settings(ROOT_URLCONF="messaging_project.urls"):
        yield


@pytest.fixture(autouse=True)
def _nothing_was_seen() -> None:
    """Let each test begin with a panel that knows nothing of the service."""
    watch.forget()
    past.memory.forget()


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest) -> str:
    """Runs a test in each home of the panel."""
    name: str = request.param
    return name


@pytest.fixture
def configured(settings: Settings) -> None:
    """Give the service the options of `configure`."""
    configure(settings)
