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
from .panel import PageRequest, Panel, PanelPage, View
from .permissions import APP_LABEL

METHODS = ("GET", "HEAD", "POST")
"""Allowed methods. Views treat everything but POST as reading."""


def routes(panel: Panel, page: PanelPage) -> Iterator[tuple[str, str, Any]]:
    """Yield path, URL name and Django view of a page and its parts.

    Paths are below the path of the page.
    """
    yield "", f"{panel.prefix}{page.name}", serve(panel, page, page.view)
    for word, view in page.parts.items():
        yield f"{word}/", f"{panel.prefix}{page.name}_{word}", serve(panel, page, view)


def serve(panel: Panel, page: PanelPage, view: View) -> Any:
    """Return the Django view of a page's view. The home decides who is signed in."""

    @never_cache
    @csrf_protect
    def django_view(http: HttpRequest) -> HttpResponse:
        request = PageRequest(http, panel, page, panel.operator(http))
        try:
            if not page.allowed(request.operator):
                raise PermissionDenied
            response = view(request) if http.method in METHODS else HttpResponseNotAllowed(METHODS)
        except PermissionDenied as denied:
            # views name the permission that is missing
            needs = f"{APP_LABEL}.{str(denied) or page.needs}"
            response = request.render(
                "forbidden.html", status=403, title=_("Not allowed"), needs=needs
            )
        except service.Unavailable as unavailable:
            response = request.render("unavailable.html", status=503, unavailable=unavailable)
        protect(http, response)
        return response

    return update_wrapper(django_view, view)


def protect(request: HttpRequest, response: HttpResponse) -> None:
    """Set the security headers: own scripts only, no frame of another site."""
    response["Content-Security-Policy"] = content_security_policy(request)
    response["X-Frame-Options"] = "DENY"
    response["X-Content-Type-Options"] = "nosniff"
    response["Referrer-Policy"] = "same-origin"


def content_security_policy(request: HttpRequest) -> str:
    """Return the policy: own files and own WebSocket only, so injected markup has no effect."""
    scheme, _separator, rest = service.endpoint(request).partition("://")
    socket = f"{scheme}://{rest.partition('/')[0]}"
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            # for some browsers 'self' does not include the WebSocket of the same host
            f"connect-src 'self' {socket}",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
