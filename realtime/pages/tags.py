"""What the template tags share: the request of a page, its elements, and what caches must not keep.

A page with a token belongs to one visitor: no cache may give it to others. So its response is
private, no token is written within `{% cache %}`, and a log line names the tag.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.template import Context
from django.templatetags.cache import CacheNode
from django.utils.safestring import SafeString, mark_safe

from realtime.pages import elements, page_config, page_positions
from realtime.pages.middleware import page_of, privacy_of
from realtime.tokens import user_subscription_token

logger = logging.getLogger("realtime.pages")


def channel_elements(
    request: HttpRequest, channels: Sequence[str], *, name: str = "", token: bool = False
) -> SafeString:
    """Return the elements that tell a page its channels, and the positions these had when it began.

    Args:
        request: of the page.
        channels: names of channels with recovery.
        name: by which scripts find the elements.
        token: whether to add a subscription token of the visitor, which makes the page private.

    Raises:
        NotAvailable, NamespaceNotFound: as `page_positions.positions`.
        ImproperlyConfigured: there is no middleware, and it cannot be done without.
    """
    page = page_of(request)
    token = token and not is_cached("realtime_channel")
    if token:
        make_private(request)
    usable = [channel for channel in channels if page_positions.check(channel)]
    found = page_positions.in_snapshot(usable)
    if page is None and found is None:
        # no middleware completes the elements later
        found = read_now(request, usable)
    if found is not None:
        more = {channel: elements.as_json(found[channel]) for channel in usable}
    else:
        at = page_positions.time_of(request)
        more = {channel: elements.waiting(channel, at) for channel in usable}
    written = []
    for channel in channels:
        values = {"channel": channel, **more.get(channel, {})}
        if token:
            values["token"] = user_subscription_token(page_config.visitor(request) or "", channel)
        written.append(elements.element(values, str(name)))
    return mark_safe("\n".join(written))


def read_now(request: HttpRequest, channels: Sequence[str]) -> dict[str, Any]:
    """Return the positions of channels at once: no middleware completes what needs them.

    Raises:
        ImproperlyConfigured: it is a coroutine, or the beginning of the request was not noted.
    """
    try:
        return dict(page_positions.positions(request, channels))
    except RuntimeError as error:
        raise ImproperlyConfigured(
            "{% realtime_channel %} needs 'realtime.pages.middleware.PositionMiddleware' in"
            " MIDDLEWARE, and {% realtime_since %} in a coroutine needs realtime.pages.aevent_id"
            f" instead: {error}"
        ) from error


def make_private(request: HttpRequest) -> None:
    """Keep a page with something of its visitor out of all caches.

    Under WSGI without the middleware it is kept out of those of Django alone.

    Raises:
        ImproperlyConfigured: the page is streamed, so its headers have left.
    """
    page = privacy_of(request)
    if page is not None:
        if page.sent:
            raise ImproperlyConfigured(
                "A token in a page needs a response that is not streamed: its headers keep the page"
                " out of caches."
            )
        page.private = True
    # of Django's cache middleware: cache_page stores before the headers are written
    request._cache_update_cache = False  # type: ignore[attr-defined]


def is_cached(tag: str) -> bool:
    """Return whether `{% cache %}` keeps what a tag writes, and gives it to other visitors."""
    frame = sys._getframe()
    while frame.f_code is not CacheNode.render.__code__:
        if frame.f_back is None:
            return False
        frame = frame.f_back
    logger.error("{%% %s %%} is within {%% cache %%}, so it writes nothing of one visitor", tag)
    return True


def request_of(context: Context) -> HttpRequest:
    """Return the request of the page that a template is rendered for.

    Raises:
        ImproperlyConfigured: the template is rendered without it.
    """
    request = getattr(context, "request", None) or context.get("request")
    # that of REST framework, whose renderers for templates pass it, holds the one of Django
    request = getattr(request, "_request", request)
    if not isinstance(request, HttpRequest):
        raise ImproperlyConfigured(
            "The template tags of realtime need the request: render the template with it, as in"
            " render(request, ...)."
        )
    return request
