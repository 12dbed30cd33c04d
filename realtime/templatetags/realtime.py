"""Template tags for pages that connect.

    {% load realtime %}{% realtime_config %}

A page with a token belongs to one visitor: no cache may give it to others.
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
    """Return a <script type="application/json" id="realtime-config"> with the configuration.

    It is data that browsers do not run, so a content security policy need not allow it.

    Args:
        own: more values; they replace ours of the same name.
    """
    return json_script(page_config.config(_request(context), **own), ELEMENT_ID)


@register.simple_tag(takes_context=True)
def realtime_token(context: Context) -> str:
    """Return a connection token for the visitor; "" if they are not logged in."""
    return page_config.token(_request(context))


def _request(context: Context) -> HttpRequest:
    request = getattr(context, "request", None) or context.get("request")
    if not isinstance(request, HttpRequest):
        raise ImproperlyConfigured(
            "The template tags of realtime need the request: render the template with it, as in"
            " render(request, ...)."
        )
    return request
