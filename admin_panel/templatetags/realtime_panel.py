"""`{% load realtime_panel %}`: URLs of the panel, permissions, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.core.paginator import Page
from django.template.context import Context

from .. import paging, words

if TYPE_CHECKING:  # they need Django's admin, and Django loads this module where it is missing
    from ..operators import Operator
    from ..panel import Panel

register = template.Library()


@register.simple_tag(takes_context=True)
def panel_url(context: Context, name: str, **query: object) -> str:
    """Return the URL of a page in the current home: `{% panel_url "channel" channel=c %}`.

    Values that are None or empty are left out of the query.
    """
    panel: Panel = context["panel"]
    values = {key: value for key, value in query.items() if value not in (None, "")}
    return panel.url(name, **values)


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
    """Render links to the pages of a list; nothing if it has only one.

    Args:
        shown: the current page of the list.
        label: name of the links, for screen readers.
        name: the page of the panel with the list.
        parameter: of its query, for the number.
        anchor: of the list on that page, for example "#channel-history".
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
    """Return whether the operator may publish: `{% if operator|may_publish:channel %}`."""
    return operator.may_publish(channel)


register.filter("since_time", words.moment)
register.filter(words.duration)
register.filter(words.age)
register.filter(words.close_code)
