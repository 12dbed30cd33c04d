"""Wraps every page view: permission check, security headers, error pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import update_wrapper
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from . import service
from .panel import Page, PageRequest, Panel, View

METHODS = ("GET", "HEAD", "POST")
"""Allowed methods. Views treat everything but POST as reading."""


def routes(panel: Panel, page: Page) -> Iterator[tuple[str, str, Any]]:
    """Path below the page's own path, URL name, and Django view, for the page and its parts."""
    yield "", f"{panel.prefix}{page.name}", serve(panel, page, page.view)
    for word, view in page.parts.items():
        yield f"{word}/", f"{panel.prefix}{page.name}_{word}", serve(panel, page, view)


def serve(panel: Panel, page: Page, view: View) -> Any:
    """A view of ours as a view of Django. Its home decides who is signed in."""

    @never_cache
    @csrf_protect
    def django_view(http: HttpRequest) -> HttpResponse:
        request = PageRequest(http, panel, page, panel.operator(http))
        try:
            if not page.allowed(request.operator):
                raise PermissionDenied
            response = view(request) if http.method in METHODS else HttpResponseNotAllowed(METHODS)
        except PermissionDenied:
            response = request.render("forbidden.html", status=403, title=_("Not allowed"))
        except service.Unavailable as unavailable:
            response = request.render("unavailable.html", status=503, unavailable=unavailable)
        protect(http, response)
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
    scheme, _separator, rest = service.endpoint(request).partition("://")
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
