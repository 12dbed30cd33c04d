"""Pages of the site that have something of their visitor, such as a token: no cache may keep them.

A tag says so while the page is rendered, and whoever sees the head of the response first writes it
down: the middleware of `realtime.pages`, or, in a site without it, the ASGI application.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils.cache import patch_cache_control, patch_vary_headers

from realtime.transports.asgi import Event, Scope, Send

KEY = "realtime.page"
"""Of the scope of a request: its page."""

_HEADERS = ("Cache-Control", "Vary")


class PagePrivacy:
    """What the tags of one page say about it."""

    def __init__(self) -> None:
        self.private = False
        """Whether it has something of its visitor."""
        self.sent = False
        """Whether its headers are on their way: what is rendered later is streamed."""


def with_privacy(scope: Scope, send: Send) -> tuple[Scope, Send]:
    """Return scope and `send` for the site: they keep private pages out of caches."""
    page = PagePrivacy()

    async def send_private(event: Event) -> None:
        if event["type"] == "http.response.start":
            page.sent = True
            if page.private:
                event = {**event, "headers": _private(event.get("headers", ()))}
        await send(event)

    return {**scope, KEY: page}, send_private


def keep_from_caches(response: Any) -> None:
    """Say in the headers of a response that it belongs to one visitor."""
    patch_cache_control(response, private=True)
    patch_vary_headers(response, ["Cookie"])


def _private(headers: Any) -> list[tuple[bytes, bytes]]:
    response, others = HttpResponse(), []
    for name, value in headers:
        title = name.decode("latin-1").title()
        if title in _HEADERS:
            before = response.headers.get(title)
            text = value.decode("latin-1")
            response.headers[title] = f"{before}, {text}" if before else text
        else:
            others.append((name, value))
    keep_from_caches(response)
    ours = [(name.encode(), response.headers[name].encode("latin-1")) for name in _HEADERS]
    return [*others, *ours]
