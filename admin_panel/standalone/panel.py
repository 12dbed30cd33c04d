"""The panel as its pages see it: their frame, their URLs, and who the operator is."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from realtime.config import sources

from ..operators import Operator, UserOperator
from ..pages import PAGES
from ..panel import Panel
from . import signin
from .shared_operator import SharedOperator

NAMESPACE = "realtime_panel"
COOKIE = "realtime_operator_token"
"""Reports of errors leave out the value of a cookie that is called a token."""

HOME = "overview"
"""The page at the root."""


class NotSignedIn(Exception):
    """Whoever asks is no operator."""


class StandalonePanel(Panel):
    """The panel by itself."""

    base_template = "admin_panel/standalone/frame.html"
    namespace = NAMESPACE

    def operator(self, request: HttpRequest) -> Operator:
        """Who asks.

        Raises:
            NotSignedIn
        """
        operator = self.find_operator(request)
        if operator is None:
            raise NotSignedIn
        return operator

    def find_operator(self, request: HttpRequest) -> Operator | None:
        """Whoever gave the password, or is a user who may use the panel; None for others."""
        if signin.needs_no_password(sources.current()) or session_of(request) is not None:
            return SharedOperator()
        return self.find_user(request)

    def find_user(self, request: HttpRequest) -> UserOperator | None:
        """The user of Django who is logged in, and may open one of the pages."""
        # the admin site is asked, because it may demand more than to be staff
        if not hasattr(request, "user") or not admin.site.has_permission(request):
            return None
        operator = UserOperator(request.user)
        return operator if self.listed_for(operator) else None

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """What the frame needs."""
        return {"needs_no_password": signin.needs_no_password(sources.current())}


panel = StandalonePanel(PAGES)


@sensitive_variables("value")
def session_of(request: HttpRequest) -> signin.Session | None:
    """The session that a request's cookie holds."""
    value = request.COOKIES.get(COOKIE)
    return signin.read(sources.current(), value, time.time()) if value else None
