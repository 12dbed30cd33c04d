"""Template tags: what a page needs to connect.

    {% load realtime %}{% realtime_config %}

Pages with a token in them belong to one visitor: they must not be cached for others.
"""

from __future__ import annotations

from typing import Any

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.template import Context
from django.utils.html import json_script
from django.utils.safestring import SafeString

from realtime import page_config

register = template.Library()

ELEMENT_ID = "realtime-config"


@register.simple_tag(takes_context=True)
def realtime_config(context: Context, **own: Any) -> SafeString:
    """A <script type="application/json" id="realtime-config"> with endpoint, token and views.

    `own`: values of the page's own, or in place of ours. It is data that browsers do not run,
    so a content security policy need not allow it.
    """
    return json_script(page_config.config(_request(context), **own), ELEMENT_ID)


@register.simple_tag(takes_context=True)
def realtime_token(context: Context) -> str:
    """A connection token for the visitor; "" for nobody."""
    return page_config.token(_request(context))


def _request(context: Context) -> HttpRequest:
    request = getattr(context, "request", None) or context.get("request")
    if not isinstance(request, HttpRequest):
        raise ImproperlyConfigured(
            "The tags of the library realtime need the request: render the template with it, as"
            " in render(request, ...)."
        )
    return request
