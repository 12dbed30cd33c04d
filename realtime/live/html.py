"""Publishing HTML: a template, or a partial of one, rendered and put into a part of a page.

    publish_html("ticker", "shop/page.html#ticker", {"price": price}, target="#ticker")

Subscribers of the channel get {"op": "swap", "swap": "inner", "target": "#ticker", "html": "..."}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import django
from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string

from realtime.server_api.publishing import Position, apublish, publish

Swap = Literal["inner", "morph", "append", "prepend", "replace", "before", "after", "remove"]
SWAPS: tuple[Swap, ...] = get_args(Swap)

_AROUND: tuple[Swap, ...] = ("replace", "before", "after", "remove")
"""Those that need a target: done to the live element itself, they would end or leave it."""


def publish_html(
    channel: str,
    template: str | None,
    context: Mapping[str, Any] | None = None,
    *,
    swap: Swap = "inner",
    target: str | None = None,
    request: HttpRequest | None = None,
    **options: Any,
) -> Position | None:
    """Publish a rendered template, which the pages of a channel put into their HTML.

    It is rendered at the call, and sent as `realtime.publish` sends: after the commit. Every
    subscriber gets the same HTML, so it must show nothing that only one of them may see.

    Args:
        channel: the name of the channel.
        template: the name of a template, or of a partial in one: "shop/orders.html#row". None for
            the swap "remove".
        context: the values for the template. They are escaped, as in a page.
        swap: what the page does: "inner" replaces the children of the target, "morph" changes only
            what differs, "append" and "prepend" add to its children, "replace" takes its place,
            "before" and "after" stand beside it, "remove" takes it away.
        target: a CSS selector; None: the `{% live %}` elements of the channel.
        request: for templates that need one. What it says of its visitor, such as `user`, would be
            shown to all subscribers.
        options: those of `realtime.publish`, such as `once` and `durable`.

    Returns:
        What `realtime.publish` returns.

    Raises:
        ValueError: the swap is not one, needs a target, or has no template; or an option is wrong.
        TemplateDoesNotExist: there is no such template or partial.
        ImproperlyConfigured: partials need Django 6.0, or the app "template_partials".
        Exception: the template raised it, or as `realtime.publish`.
    """
    _check(template, swap, target)
    html = None if template is None else render(template, context, request)
    return publish(channel, _swapped(swap, target, html), **options)


async def apublish_html(
    channel: str,
    template: str | None,
    context: Mapping[str, Any] | None = None,
    *,
    swap: Swap = "inner",
    target: str | None = None,
    request: HttpRequest | None = None,
    **options: Any,
) -> Position | None:
    """Publish a rendered template. Async version of `publish_html`.

    The template is rendered in the thread of `sync_to_async`, and may use the database.
    """
    _check(template, swap, target)
    html = None if template is None else await sync_to_async(render)(template, context, request)
    return await apublish(channel, _swapped(swap, target, html), **options)


def render(
    template: str, context: Mapping[str, Any] | None = None, request: HttpRequest | None = None
) -> str:
    """Return a rendered template, or a partial of one.

    Raises:
        TemplateDoesNotExist: there is no such template or partial.
        ImproperlyConfigured: partials need Django 6.0, or the app "template_partials".
        Exception: the template raised it.
    """
    try:
        return render_to_string(template, None if context is None else dict(context), request)
    except TemplateDoesNotExist as error:
        has_partials = django.VERSION >= (6, 0) or apps.is_installed("template_partials")
        if "#" not in template or has_partials or str(error.args[0]) != template:
            raise
        raise ImproperlyConfigured(
            f"{template!r} names a partial of a template. Partials need Django 6.0, or the package"
            ' django-template-partials with "template_partials" in INSTALLED_APPS; a template of'
            " its own needs neither."
        ) from error


def _check(template: str | None, swap: str, target: str | None) -> None:
    if swap not in SWAPS:
        raise ValueError(f"a swap is one of {', '.join(SWAPS)}, not {swap!r}")
    if target is not None and not isinstance(target, str):
        raise TypeError(f"target must be a CSS selector, not {type(target).__name__}")
    if swap in _AROUND and not target:
        raise ValueError(f"the swap {swap!r} needs a target")
    if (template is None) is not (swap == "remove"):
        raise ValueError('a template is needed, but for the swap "remove", which has none')


def _swapped(swap: str, target: str | None, html: str | None) -> dict[str, str]:
    """Return the data of the publication. Without a target it is the live element itself."""
    data = {"op": "swap", "swap": swap, "target": target, "html": html}
    return {name: value for name, value in data.items() if value is not None}
