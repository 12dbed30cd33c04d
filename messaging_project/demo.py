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
    """The page. What it needs to connect is written by `{% realtime_config %}`."""
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
    """A new token for the same demo user; the page asks before the old one expires."""
    return JsonResponse({"token": issue_token(demo_user(request))})


def demo_user(request: HttpRequest) -> str:
    """The demo user of this browser session; chosen at its first visit."""
    user: str | None = request.session.get(_SESSION_KEY)
    if user is None:
        user = f"guest-{1000 + secrets.randbelow(9000)}"
        request.session[_SESSION_KEY] = user
    return user


def issue_token(user: str) -> str:
    """A connection token; others see the name in it beside what this user publishes."""
    name = user.replace("guest-", "Guest ")
    return tokens.connection_token(user, ttl=TOKEN_TTL, info={"name": name})


def content_security_policy(socket: str) -> str:
    """Only our own files, and only our own WebSocket: injected markup could do nothing."""
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
