"""The standalone home of the pages: their frame, their URLs, and their operator."""

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
"""Django's error reports hide the values of cookies with "token" in their name."""

HOME = "overview"
"""Name of the page at the root."""


class NotSignedIn(Exception):
    """The request comes from no operator."""


class StandalonePanel(Panel):
    """The standalone panel."""

    base_template = "admin_panel/standalone/frame.html"
    namespace = NAMESPACE

    def operator(self, request: HttpRequest) -> Operator:
        """Return the operator who sent a request.

        Raises:
            NotSignedIn: there is none.
        """
        operator = self.find_operator(request)
        if operator is None:
            raise NotSignedIn
        return operator

    def find_operator(self, request: HttpRequest) -> Operator | None:
        """Return the shared-password operator or the user of a request; None for neither."""
        if signin.needs_no_password(sources.current()) or session_of(request) is not None:
            return SharedOperator()
        return self.find_user(request)

    def find_user(self, request: HttpRequest) -> UserOperator | None:
        """Return the user who is logged in and may open one of the pages; None for others."""
        # an admin site may require more than `is_staff`
        if not hasattr(request, "user") or not admin.site.has_permission(request):
            return None
        operator = UserOperator(request.user)
        return operator if self.listed_for(operator) else None

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context of the frame."""
        return {"needs_no_password": signin.needs_no_password(sources.current()), **self.look()}

    def look(self) -> dict[str, Any]:
        """Return what tells this panel from those of other sites, for the frame."""
        config = sources.current()
        return {"panel_name": config.admin_name, "panel_accent": config.admin_accent}


panel = StandalonePanel(PAGES)


@sensitive_variables("value")
def session_of(request: HttpRequest) -> signin.OperatorSession | None:
    """Return the session in a request's cookie, None for none."""
    value = request.COOKIES.get(COOKIE)
    return signin.read(sources.current(), value, time.time()) if value else None
