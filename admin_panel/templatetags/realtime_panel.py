"""`{% load realtime_panel %}`: URLs of the panel, permissions, numbers."""

from __future__ import annotations

from typing import Any

from django import template
from django.core.paginator import Page
from django.template.context import Context

from .. import paging, words
from ..operators import Operator
from ..panel import Panel

register = template.Library()


@register.simple_tag(takes_context=True)
def panel_url(context: Context, name: str, **query: object) -> str:
    """The URL of a page in the home that is being looked at: `{% panel_url "channel" channel=c %}`.

    What is None or empty is left out of the query.
    """
    panel: Panel = context["panel"]
    given = {key: value for key, value in query.items() if value not in (None, "")}
    return panel.url(name, **given)


@register.inclusion_tag("admin_panel/_pages.html", takes_context=True)
def page_links(
    context: Context,
    shown: Page[Any],
    label: str,
    name: str,
    parameter: str,
    anchor: str = "",
    **query: object,
) -> dict[str, object]:
    """Links to the pages of a list; nothing where it has only one.

    Args:
        shown: the page of the list that is shown.
        label: what a screen reader calls the links.
        name: the page of the panel that holds the list.
        parameter: of its query, for the number.
        anchor: where the list is on that page, for example "#channel-history".
        query: the rest of the query.
    """

    def url(number: int | None) -> str:
        if number in (None, shown.number):
            return ""
        return panel_url(context, name, **query, **{parameter: number}) + anchor

    links = [(number, url(number)) for number in paging.numbers(shown)]
    return {"label": label, "links": links}


@register.filter
def may_publish(operator: Operator, channel: str) -> bool:
    """Whether the operator may publish into a channel: `{% if operator|may_publish:channel %}`."""
    return operator.may_publish(channel)


@register.filter
def duration(seconds: float) -> str:
    """A time span in words: `{{ node.uptime|duration }}`."""
    return words.duration(seconds)
