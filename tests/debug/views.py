"""A site with django-debug-toolbar, whose pages publish and hold tokens."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template

import realtime
from realtime import tokens as issuing
from realtime.tracing.recording import recorder

APPS = ["debug_toolbar"]
MIDDLEWARE = [
    "debug_toolbar.middleware.DebugToolbarMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "realtime.pages.middleware.PositionMiddleware",
]
PANELS = ["realtime.debug.RealtimePanel"]
OPTIONS = {
    "token_hmac_secret_key": "a secret of at least thirty-two bytes",
    "page_margin": 0,
    "namespaces": [
        {"name": "orders", "history_size": 9, "history_lifetime": 100, "force_recovery": True},
        {"name": "plain"},
    ],
}
BODY = "<html><body>{}</body></html>"

seen: list[object] = []
"""What records the requests of the page "looking"."""


def rendered(request: HttpRequest, text: str) -> HttpResponse:
    template = Template("{% load realtime %}" + BODY.format(text))
    return HttpResponse(template.render(Context({"request": request})))


def publishing(request: HttpRequest) -> HttpResponse:
    realtime.publish("orders:42", {"text": "<b>" + "x" * 400})
    realtime.publish_many([("plain:1", 1), ("plain:2", 2)])
    return rendered(request, "")


async def apublishing(request: HttpRequest) -> HttpResponse:
    await realtime.apublish("orders:42", {"text": "on a loop"})
    return rendered(request, "")


def committing(request: HttpRequest) -> HttpResponse:
    with transaction.atomic():
        realtime.publish("orders:42", "kept")
        realtime.publish("orders:42", "row", durable=True)
    with transaction.atomic():
        realtime.publish("plain:1", "undone", fail_silently=True)
        transaction.set_rollback(True)
    return rendered(request, "")


def positions(request: HttpRequest) -> HttpResponse:
    return rendered(request, '{% realtime_channel "orders:42" %}')


def tokens(request: HttpRequest) -> HttpResponse:
    made = [
        issuing.connection_token("17", ttl=None, channels=["a", "b"]),
        issuing.subscription_token("client-1", "$orders:42"),
        issuing.user_subscription_token("", "$orders:43"),
        issuing.observer_token("orders:44"),
    ]
    response = rendered(request, "")
    response["X-Tokens"] = " ".join(made)
    return response


def failing(request: HttpRequest) -> HttpResponse:
    realtime.publish("plain:1", 1, fail_silently=True)
    return rendered(request, "")


def many(request: HttpRequest) -> HttpResponse:
    realtime.broadcast(["plain:1"] * 501, 1)
    return rendered(request, "")


def looking(request: HttpRequest) -> HttpResponse:
    seen.append(recorder.get())
    return rendered(request, "")


VIEWS = (publishing, apublishing, committing, positions, tokens, failing, many, looking)
