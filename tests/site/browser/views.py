"""The page with the client module, and tokens that expire soon."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from realtime.tokens import connection_token, subscription_token


def page(request: HttpRequest) -> HttpResponse:
    """The page; `ask` and `next` in it are for tests."""
    return render(request, "browser/page.html")


requests: dict[str, int] = {}
"""Channel → how often its page was asked for."""


def cached(request: HttpRequest) -> HttpResponse:
    """A page that a cache gives once: its position is older than history."""
    channel = request.GET["channel"]
    requests[channel] = requests.get(channel, 0) + 1
    values = {"number": requests[channel], "token": connection_token("17")}
    return render(request, "browser/cached.html", {"channel": channel, **values})


def token(request: HttpRequest) -> JsonResponse:
    """A subscription token that is valid for `ttl` seconds, for whoever asks."""
    asked = request.GET
    made = subscription_token(asked["client"], asked["channel"], ttl=int(asked["ttl"]))
    return JsonResponse({"token": made})
