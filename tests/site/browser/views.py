"""The page with the client module, and tokens that expire soon."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from realtime.tokens import subscription_token


def page(request: HttpRequest) -> HttpResponse:
    """The page; `ask` and `next` in it are for tests."""
    return render(request, "browser/page.html")


def token(request: HttpRequest) -> JsonResponse:
    """A subscription token that is valid for `ttl` seconds, for whoever asks."""
    asked = request.GET
    made = subscription_token(asked["client"], asked["channel"], ttl=int(asked["ttl"]))
    return JsonResponse({"token": made})
