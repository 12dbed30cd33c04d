"""What surrounds every page: the permission, headers, tabs, and a face for failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from realtime import page_config

from .operators import Operator
from .panel import Page, Panel, View
from .service import Unavailable

METHODS = ("GET", "HEAD", "POST")
"""What pages are asked with. Views take whatever is no POST for reading."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to a page: what a view is given."""

    request: HttpRequest
    panel: Panel
    page: Page
    operator: Operator

    def url(self, name: str, **query: object) -> str:
        """The URL of a page; see `Panel.url`."""
        return self.panel.url(name, **query)

    def redirect(self, name: str, **query: object) -> HttpResponse:
        """Send the browser to a page."""
        return redirect(self.url(name, **query))

    def render(self, template: str, *, status: int = 200, **context: object) -> HttpResponse:
        """The page, from a template that extends `admin_panel/base.html`."""
        surroundings = self.panel.context(self.request) | self._context()
        return TemplateResponse(
            self.request, f"admin_panel/{template}", surroundings | context, status=status
        )

    def fragment(self, template: str, **context: object) -> str:
        """A piece of the page, from a template that extends nothing."""
        return render_to_string(
            f"admin_panel/{template}", self._context() | context, request=self.request
        )

    def success(self, text: str | Promise) -> None:
        """Say on the next page that something was done."""
        messages.success(self.request, str(text))

    def warning(self, text: str | Promise) -> None:
        """Say on the next page what the operator should mind."""
        messages.warning(self.request, str(text))

    def _context(self) -> dict[str, Any]:
        return {
            "panel": self.panel,
            "page": self.page,
            "operator": self.operator,
            "tabs": self.panel.listed_for(self.operator),
            "title": self.page.label,
        }


def routes(panel: Panel, page: Page) -> Iterator[tuple[str, str, Any]]:
    """Path below the page's own path, URL name, and Django view, for the page and its parts."""
    yield "", f"{panel.prefix}{page.name}", serve(panel, page, page.view)
    for word, view in page.parts.items():
        yield f"{word}/", f"{panel.prefix}{page.name}_{word}", serve(panel, page, view)


def serve(panel: Panel, page: Page, view: View) -> Any:
    """A view of ours as a view of Django. Its home decides who is signed in."""

    @never_cache
    @csrf_protect
    def django_view(request: HttpRequest) -> HttpResponse:
        visit = Visit(request, panel, page, panel.operator(request))
        try:
            if not page.allowed(visit.operator):
                raise PermissionDenied
            response = view(visit) if request.method in METHODS else HttpResponseNotAllowed(METHODS)
        except PermissionDenied:
            response = visit.render("forbidden.html", status=403, title=_("Not allowed"))
        except Unavailable as unavailable:
            response = visit.render("unavailable.html", status=503, unavailable=unavailable)
        protect(request, response)
        return response

    return update_wrapper(django_view, view)


def protect(request: HttpRequest, response: HttpResponse) -> None:
    """Have the browser run our own files only, and show the page in no other site's frame."""
    response["Content-Security-Policy"] = content_security_policy(request)
    response["X-Frame-Options"] = "DENY"
    response["X-Content-Type-Options"] = "nosniff"
    response["Referrer-Policy"] = "same-origin"


def content_security_policy(request: HttpRequest) -> str:
    """Only our own files, and only our own WebSocket: injected markup could do nothing."""
    scheme, _separator, rest = page_config.endpoint(request).partition("://")
    socket = f"{scheme}://{rest.partition('/')[0]}"
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            # some browsers do not count the WebSocket of the same host as 'self'
            f"connect-src 'self' {socket}",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
