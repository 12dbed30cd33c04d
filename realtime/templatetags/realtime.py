"""Template tags for pages that connect.

    {% load realtime %}{% realtime_importmap %}{% realtime_config %}

    {% realtime_channel "orders:42" %}
    {% realtime_channels "orders:42" "news" %}
    <div hx-sse:connect="/connection/events?channel=news&amp;since={% realtime_since "news" %}">

A page with a token belongs to one visitor: no cache may give it to others. So no token is written
within `{% cache %}`, and a log line names the tag.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.template import Context
from django.templatetags.cache import CacheNode
from django.templatetags.static import static
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString, mark_safe

from realtime.config import sources
from realtime.pages import elements, page_config, page_positions
from realtime.pages.headers import event_id
from realtime.pages.middleware import page_of
from realtime.payload import escape
from realtime.tokens import user_subscription_token

logger = logging.getLogger("realtime.pages")

register = template.Library()

ELEMENT_ID = "realtime-config"


@register.simple_tag(takes_context=True)
def realtime_config(context: Context, **own: Any) -> SafeString:
    """Return a <script type="application/json" id="realtime-config"> with the configuration.

    It is data that browsers do not run, so a content security policy need not allow it.

    Args:
        own: more values; they replace ours of the same name.
    """
    if "token" not in own and not sources.current().session_authentication:
        own |= {"token": ""} if _is_cached("realtime_config") else {}
    return json_script(page_config.config(_request(context), **own), ELEMENT_ID)


@register.simple_tag(takes_context=True)
def realtime_importmap(
    context: Context, imports: Mapping[str, str] | None = None, nonce: object = None
) -> SafeString:
    """Return an import map by which scripts of the page import the client as "realtime".

    It must stand before the first module of the page. Most browsers take only one import map of a
    page, so the site's own names go into this one.

    Args:
        context: that of the template; its `csp_nonce` is used if there is no `nonce`.
        imports: more names → URLs; they replace ours of the same name.
        nonce: that of the content security policy.
    """
    names = {"realtime": static("realtime/client.js"), **(imports or {})}
    nonce = context.get("csp_nonce") if nonce is None else nonce
    return format_html(
        '<script type="importmap"{}>{}</script>',
        "" if nonce is None else format_html(' nonce="{}"', str(nonce)),
        mark_safe(escape(json.dumps({"imports": names}).encode()).decode()),
    )


@register.simple_tag(takes_context=True)
def realtime_token(context: Context) -> str:
    """Return a connection token for the visitor; "" if they are not logged in."""
    return "" if _is_cached("realtime_token") else page_config.token(_request(context))


@register.simple_tag(takes_context=True)
def realtime_channel(context: Context, channel: str, **options: Any) -> SafeString:
    """Return an element with a channel and the position it had when the request began.

    Args:
        channel: the name of a channel with history and recovery.
        options: `as`, a name by which the script finds the channel; `token`, whether to add a
            subscription token of the visitor, which makes the response private.
    """
    return _elements(_request(context), [channel], **_renamed(options))


@register.simple_tag(takes_context=True)
def realtime_channels(context: Context, *channels: Any, token: bool = False) -> SafeString:
    """Return such an element for each of several channels.

    Args:
        channels: names, and lists of names.
        token: as with `realtime_channel`.
    """
    names: list[str] = []
    for each in channels:
        names += [each] if isinstance(each, str) or not isinstance(each, Iterable) else each
    return _elements(_request(context), names, token=token)


@register.simple_tag(takes_context=True)
def realtime_since(context: Context, *channels: str) -> str:
    """Return the value of `since=` in an address of /connection/events.

    The listener misses nothing that was published after the request of the page began. It is the
    ID of an event, with characters that may stand in an address.

    Args:
        channels: the channels that the address names.
    """
    usable = [channel for channel in channels if page_positions.check(channel)]
    return event_id(_read_now(_request(context), usable))


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """`as` is a keyword of Python."""
    return {"name" if option == "as" else option: value for option, value in options.items()}


def _elements(
    request: HttpRequest, channels: list[str], *, name: str = "", token: bool = False
) -> SafeString:
    page = page_of(request)
    token = token and not _is_cached("realtime_channel")
    if token:
        _make_private(request)
    usable = [channel for channel in channels if page_positions.check(channel)]
    if page is None:
        # no middleware completes the elements later
        found = _read_now(request, usable)
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


def _read_now(request: HttpRequest, channels: list[str]) -> dict[str, Any]:
    try:
        return dict(page_positions.positions(request, channels))
    except RuntimeError as error:
        raise ImproperlyConfigured(
            "{% realtime_channel %} needs 'realtime.pages.middleware.PositionMiddleware' in"
            " MIDDLEWARE, and {% realtime_since %} in a coroutine needs realtime.pages.aevent_id"
            f" instead: {error}"
        ) from error


def _make_private(request: HttpRequest) -> None:
    """Keep a page with a token out of all caches.

    Raises:
        ImproperlyConfigured: without the middleware, or in a streamed page, it cannot be done.
    """
    page = page_of(request)
    if page is None or page.sent:
        raise ImproperlyConfigured(
            "A token in a page needs 'realtime.pages.middleware.PositionMiddleware' in MIDDLEWARE,"
            " and a response that is not streamed: its headers keep the page out of caches."
        )
    page.private = True
    # of Django's cache middleware: cache_page stores before the headers are written
    request._cache_update_cache = False  # type: ignore[attr-defined]


def _is_cached(tag: str) -> bool:
    """Return whether `{% cache %}` keeps what a tag writes, and gives it to other visitors."""
    frame = sys._getframe()
    while frame.f_code is not CacheNode.render.__code__:
        if frame.f_back is None:
            return False
        frame = frame.f_back
    logger.error("{%% %s %%} is within {%% cache %%}, so it writes no token", tag)
    return True


def _request(context: Context) -> HttpRequest:
    request = getattr(context, "request", None) or context.get("request")
    # that of REST framework, whose renderers for templates pass it, holds the one of Django
    request = getattr(request, "_request", request)
    if not isinstance(request, HttpRequest):
        raise ImproperlyConfigured(
            "The template tags of realtime need the request: render the template with it, as in"
            " render(request, ...)."
        )
    return request
