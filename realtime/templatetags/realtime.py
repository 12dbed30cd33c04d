"""Template tags for pages that connect.

{% load realtime %}{% realtime_importmap %}{% realtime_config %}

{% realtime_channel "orders:42" %}
{% realtime_channels "orders:42" "news" %}
<div hx-sse:connect="/connection/events?channel=news&amp;since={% realtime_since "news" %}">
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.conf import settings
from django.template import Context
from django.templatetags.static import static
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString, mark_safe

from realtime.config import sources
from realtime.pages import page_config, page_positions
from realtime.pages.headers import event_id
from realtime.pages.tags import (
    channel_elements,
    is_cached,
    make_private,
    read_now,
    request_of,
)
from realtime.payload import escape

register = template.Library()

ELEMENT_ID = "realtime-config"
INSPECTOR = "realtime/inspect.js"
MODULES = {
    "realtime": "realtime/client.js",
    "realtime/answers": "realtime/answers.js",
    "realtime/inspect": INSPECTOR,
    "realtime/live": "realtime/live.js",
    "realtime/maps": "realtime/maps.js",
}
"""Name in the import map → static file."""


@register.simple_tag(takes_context=True)
def realtime_config(context: Context, **own: Any) -> SafeString:
    """Return a <script type="application/json" id="realtime-config"> with the configuration.

    It is data that browsers do not run, so a content security policy need not allow it. A token in
    it makes the response private.

    Args:
        own: more values; they replace ours of the same name.
    """
    request = request_of(context)
    if own["token"] if "token" in own else not sources.current().session_authentication:
        if is_cached("realtime_config"):
            own["token"] = ""
        else:
            make_private(request)
    return json_script(page_config.config(request, **own), ELEMENT_ID)


@register.simple_tag(takes_context=True)
def realtime_importmap(
    context: Context, imports: Mapping[str, str] | None = None, nonce: object = None
) -> SafeString:
    """Return an import map by which scripts of the page import the client as "realtime".

    The module of live blocks is "realtime/live" in it, that of answers "realtime/answers",
    that of maps "realtime/maps", the inspector "realtime/inspect".

    It must stand before the first module of the page. Most browsers take only one import map of a
    page, so the site's own names go into this one.

    Args:
        context: that of the template; its `csp_nonce` is used if there is no `nonce`.
        imports: more names → URLs; they replace ours of the same name.
        nonce: that of the content security policy.
    """
    names = {name: static(path) for name, path in MODULES.items()} | dict(imports or {})
    nonce = context.get("csp_nonce") if nonce is None else nonce
    return format_html(
        '<script type="importmap"{}>{}</script>',
        "" if nonce is None else format_html(' nonce="{}"', str(nonce)),
        mark_safe(escape(json.dumps({"imports": names}).encode()).decode()),
    )


@register.simple_tag(takes_context=True)
def realtime_inspector(context: Context, permission: str = "", nonce: object = None) -> str:
    """Return a <script> that shows an inspector of each client that the page makes after it.

    Args:
        context: that of the template; its `csp_nonce` is used if there is no `nonce`.
        permission: whose holders get it, such as "shop.view_traffic"; without DEBUG only they do.
        nonce: that of the content security policy.

    Returns:
        "" where DEBUG is off, for visitors without the permission.
    """
    if not settings.DEBUG and not _may_inspect(context, permission):
        return ""
    nonce = context.get("csp_nonce") if nonce is None else nonce
    return format_html(
        '<script type="module" src="{}" data-realtime-inspector{}></script>',
        static(INSPECTOR),
        "" if nonce is None else format_html(' nonce="{}"', str(nonce)),
    )


def _may_inspect(context: Context, permission: str) -> bool:
    if not permission or is_cached("realtime_inspector"):
        return False
    request = request_of(context)
    make_private(request)
    user = page_config.visitor(request)
    return user is not None and bool(user.has_perm(permission))


@register.simple_tag(takes_context=True)
def realtime_token(context: Context) -> str:
    """Return a connection token for the visitor, which makes the response private.

    Returns:
        "" if the visitor is not logged in.
    """
    if is_cached("realtime_token"):
        return ""
    request = request_of(context)
    make_private(request)
    return page_config.token(request)


@register.simple_tag(takes_context=True)
def realtime_channel(context: Context, channel: str, **options: Any) -> SafeString:
    """Return an element with a channel and the position it had when the request began.

    Args:
        channel: the name of a channel with history and recovery.
        options: `as`, a name by which the script finds the channel; `token`, whether to add a
            subscription token of the visitor, which makes the response private.
    """
    return channel_elements(request_of(context), [channel], **_renamed(options))


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
    return channel_elements(request_of(context), names, token=token)


@register.simple_tag(takes_context=True)
def realtime_since(context: Context, *channels: str) -> str:
    """Return the value of `since=` in an address of /connection/events.

    The listener misses nothing that was published after the request of the page began. It is the
    ID of an event, with characters that may stand in an address.

    Args:
        channels: the channels that the address names.
    """
    usable = [channel for channel in channels if page_positions.check(channel)]
    return event_id(read_now(request_of(context), usable))


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """`as` is a keyword of Python."""
    return {"name" if option == "as" else option: value for option, value in options.items()}
