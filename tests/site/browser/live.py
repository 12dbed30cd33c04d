"""Pages with live elements, whose content the tests say: their bodies are kept by name."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template import Context, Template
from django.views.decorators.csrf import csrf_exempt
from django.views.static import serve

from realtime.tokens import connection_token, user_subscription_token
from tests.js_builds import DIRECTORY

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws:;"
    " img-src 'self' data:; base-uri 'none'; form-action 'self'; report-uri /live/report"
)
"""As strict as a site may be: no inline script, no eval."""
TRUSTED_TYPES = "; require-trusted-types-for 'script'; trusted-types realtime-live"

PACKAGES = {
    "alpine": "@alpinejs/csp/dist/cdn.min.js",
    "htmx": "htmx.org/dist/htmx.min.js",
    "htmx-sse": "htmx.org/dist/ext/hx-sse.min.js",
    "idiomorph": "idiomorph/dist/idiomorph.min.js",
    "turbo": "@hotwired/turbo/dist/turbo.es2017-umd.js",
}
"""Libraries that a page may have, from npm."""

SOON = 3
"""Seconds in which a token ends that the page may have."""

bodies: dict[str, str] = {}
"""Name of a page → template of what is in its body."""
requested: dict[str, int] = {}
"""Name of a page → how often it was asked for."""


def page(request: HttpRequest, name: str) -> HttpResponse:
    """A page; `with` names libraries, `policy` one of the policies."""
    if name not in bodies:
        raise Http404
    requested[name] = requested.get(name, 0) + 1
    body = Template("{% load realtime realtime_live %}" + bodies[name])
    ends = user_subscription_token("17", f"${name}", ttl=SOON)
    values = {"request": request, "name": name, "token_that_ends": ends}
    context: dict[str, Any] = {
        "body": body.render(Context(values)),
        "token": connection_token("17"),
        "libraries": request.GET.getlist("with"),
    }
    response = render(request, "browser/live.html", context)
    if "policy" in request.GET:
        more = TRUSTED_TYPES if request.GET["policy"] == "types" else ""
        response.headers["Content-Security-Policy"] = POLICY + more
    return response


@csrf_exempt
def write(request: HttpRequest, name: str) -> JsonResponse:
    """Change what is in a page. Returns how often it was asked for."""
    if request.body:
        bodies[name] = json.loads(request.body)
    return JsonResponse({"requested": requested.get(name, 0)})


@csrf_exempt
def report(request: HttpRequest) -> HttpResponse:
    """Take a report of what a policy has refused."""
    return HttpResponse(status=204)


def library(request: HttpRequest, name: str) -> Any:
    """A library from npm."""
    return serve(request, PACKAGES[name], str(DIRECTORY / "node_modules"))
