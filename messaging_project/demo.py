"""The demo page: two clients of the service side by side, in plain HTML and JavaScript.

Only with the setting DEMO, because it gives a token to every visitor. Its clients are anonymous, so
they reach only channels that admit anonymous clients, such as those of the namespace demo.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
import shlex
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from messaging_project.documentation import first_page
from realtime import tokens
from realtime.config import sources
from realtime.pages import page_config

CHANNEL = "demo:lobby"
TOKEN_TTL = 3600
"""Seconds; the page fetches a new token in time."""

KEY = "YOUR_API_KEY"
"""Stands for the API key in the line that the page shows: visitors must not know the key."""

COOKIE = "realtime_demo_guest"
"""The number of the guest. No session: each visitor would leave a row in the database."""

OTHER = "other"
"""Names the second client of the page in the URL of its tokens."""

Response = TypeVar("Response", bound=HttpResponse)
View = Callable[[HttpRequest], HttpResponse]


def _only_with_demo(view: View) -> View:
    @functools.wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if not settings.DEMO:
            raise Http404("The setting DEMO is off.")
        return view(request)

    return guarded


@require_safe
def root(request: HttpRequest) -> HttpResponse:
    """Redirect to the demo, or to the admin where there is none."""
    return HttpResponseRedirect(reverse("demo" if settings.DEMO else "admin:index"))


@require_safe
@never_cache
@_only_with_demo
def page(request: HttpRequest) -> HttpResponse:
    """Render the page. `{% realtime_config %}` writes what it needs to connect."""
    guest = guest_of(request)
    refresh = reverse("demo-token")
    key = "" if sources.current().api_insecure else KEY
    response = render(
        request,
        "messaging_project/demo.html",
        {
            "channel": CHANNEL,
            "user": name_of(guest),
            "token": issue_token(name_of(guest)),
            "refresh": refresh,
            "other": {
                "user": name_of(guest, other=True),
                "token": issue_token(name_of(guest, other=True)),
                "refreshEndpoint": f"{refresh}?client={OTHER}",
            },
            "key": key,
            "documentation": first_page(),
            "line": publish_line(request.build_absolute_uri(reverse("realtime_api:commands")), key),
        },
    )
    response["Content-Security-Policy"] = content_security_policy(page_config.endpoint(request))
    return remember(response, guest)


@require_safe
@never_cache
@_only_with_demo
def token(request: HttpRequest) -> HttpResponse:
    """Return a new token for the same client; the page asks before the old one expires."""
    guest = guest_of(request)
    name = name_of(guest, other=request.GET.get("client") == OTHER)
    return remember(JsonResponse({"token": issue_token(name)}), guest)


def guest_of(request: HttpRequest) -> str:
    """Return the number of the guest in this browser, chosen at the first visit."""
    guest = request.COOKIES.get(COOKIE, "")
    return guest if re.fullmatch("[0-9]{4}", guest) else str(1000 + secrets.randbelow(9000))


def remember(response: Response, guest: str) -> Response:
    """Keep the number of the guest in the browser, and return the response."""
    response.set_cookie(COOKIE, guest, httponly=True, samesite="Lax")
    return response


def name_of(guest: str, *, other: bool = False) -> str:
    """Return the name that others see beside the publications of a client.

    Args:
        guest: the number of the guest.
        other: whether it is the page's second client, which plays another visitor.
    """
    return f"Guest {guest}-2" if other else f"Guest {guest}"


def issue_token(name: str) -> str:
    """Make a connection token of an anonymous user, with the name that others see."""
    return tokens.connection_token("", ttl=TOKEN_TTL, info={"name": name})


def publish_line(url: str, key: str) -> str:
    """Return a command for a terminal that publishes into the channel of the page.

    Args:
        url: of the server API.
        key: of the server API; "" if it needs none.
    """
    params = {"channel": CHANNEL, "data": {"text": "Hello from the terminal"}}
    authorization = ["-H", f"Authorization: apikey {key}"] if key else []
    command = json.dumps({"method": "publish", "params": params})
    return shlex.join(["curl", *authorization, "-d", command, url])


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
