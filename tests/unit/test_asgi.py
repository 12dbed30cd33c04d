"""What `realtime.asgi.application` needs of a site."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import modify_settings

from realtime.asgi import application


def test_site_without_the_app_is_not_served() -> None:
    with (
        modify_settings(INSTALLED_APPS={"remove": "realtime"}),
        pytest.raises(ImproperlyConfigured, match="INSTALLED_APPS"),
    ):
        application(AsyncMock())
