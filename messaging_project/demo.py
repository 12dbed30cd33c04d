"""The demo page: a browser as a client of the service, in plain HTML and JavaScript."""

from __future__ import annotations

import json
import secrets

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from realtime import page_config, tokens

CHANNEL = "demo:lobby"
TOKEN_TTL = 3600
"""Seconds; the page fetches a new token in time."""

_SESSION_KEY = "demo_user"


@require_safe
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Render the page. `{% realtime_config %}` writes what it needs to connect."""
    user = demo_user(request)
    command = {"method": "publish", "params": {"channel": CHANNEL, "data": {"text": "Hello"}}}
    response = render(
        request,
        "messaging_project/demo.html",
        {
            "channel": CHANNEL,
            "user": user,
            "token": issue_token(user),
            "command": json.dumps(command),
            "api": request.build_absolute_uri(reverse("realtime_api:commands")),
        },
    )
    response["Content-Security-Policy"] = content_security_policy(page_config.endpoint(request))
    return response


@require_safe
@never_cache
def token(request: HttpRequest) -> JsonResponse:
    """Return a new token for the same demo user; the page asks before the old one expires."""
    return JsonResponse({"token": issue_token(demo_user(request))})


def demo_user(request: HttpRequest) -> str:
    """Return the demo user of this session, chosen at its first visit."""
    user: str | None = request.session.get(_SESSION_KEY)
    if user is None:
        user = f"guest-{1000 + secrets.randbelow(9000)}"
        request.session[_SESSION_KEY] = user
    return user


def issue_token(user: str) -> str:
    """Make a connection token with a name that others see beside the user's publications."""
    name = user.replace("guest-", "Guest ")
    return tokens.connection_token(user, ttl=TOKEN_TTL, info={"name": name})


def content_security_policy(socket: str) -> str:
    """Allow our own files and our own WebSocket only: injected markup can do nothing."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            # some browsers do not count the WebSocket of the same host as 'self'
            f"connect-src 'self' {socket}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
    )
