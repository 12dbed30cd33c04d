"""Fixtures of the tests of the management command."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.live.console.command import KEYS, OPTIONS


@pytest.fixture
def own_options(settings: Settings) -> None:
    """This process is a site with the options of the service."""
    settings.REALTIME = {**KEYS, **OPTIONS}
