"""The template tag of `realtime.live`.

{% load realtime_live %}
{% live "team:7:orders" %}{% for order in orders %}...{% endfor %}{% endlive %}
"""

from __future__ import annotations

import re

from django import template
from django.template import Context, TemplateSyntaxError
from django.utils.html import format_html
from django.utils.safestring import SafeString

from realtime.pages.tags import channel_elements, request_of

register = template.Library()

ADDS = ("append", "prepend")


@register.simple_block_tag(takes_context=True)
def live(
    context: Context,
    content: str,
    channel: str,
    *,
    id: str = "",  # noqa: A002, it is the attribute of the element
    add: str = "append",
    src: str = "",
    token: bool = False,
) -> SafeString:
    """Return an element with the content of the block, which follows a channel.

    Its first child is the element of `{% realtime_channel %}`: the channel, and the position it had
    when the request began. Without JavaScript, the content is a part of the page as any other.

    Args:
        context: that of the template; the request must be in it.
        content: the rendered block.
        channel: the name of a channel with history and recovery.
        id: the ID of the element; "" makes one of the channel. It must be the same in every
            response, as the browser finds the element by it when it gets the page again.
        add: where rows go that the page does not have: "append" or "prepend".
        src: the address from which the browser gets the element again; "": that of the page.
        token: as with `{% realtime_channel %}`: a subscription token, for private channels.

    Raises:
        NotAvailable: the channel has no recovery.
        NamespaceNotFound: the channel is in no namespace of the configuration.
        ImproperlyConfigured: the template is rendered without a request.
        TemplateSyntaxError: `add` is neither.
    """
    if add not in ADDS:
        raise TemplateSyntaxError(f"add is one of {', '.join(ADDS)}, not {add!r}")
    return format_html(
        '<realtime-live channel="{}" id="{}"{}{}>{}{}</realtime-live>',
        channel,
        id or element_id(channel),
        format_html(' data-add="{}"', add) if add != ADDS[0] else "",
        format_html(' src="{}"', src) if src else "",
        channel_elements(request_of(context), [channel], token=token),
        content,
    )


def element_id(channel: str) -> str:
    """Return the ID of a channel's element: a name that a CSS selector may hold."""
    return "live-" + re.sub(r"[^A-Za-z0-9_-]", "-", channel)
