"""The addresses of the site. Imported when the toolbar is installed, for it has a model."""

from __future__ import annotations

from typing import Any

from debug_toolbar.toolbar import debug_toolbar_urls
from django.urls import path

from tests.debug.views import VIEWS

urlpatterns: list[Any] = [
    *(path(view.__name__, view) for view in VIEWS),
    *debug_toolbar_urls(),
]
