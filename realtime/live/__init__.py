"""HTML over channels: fragments of templates, and models whose changes are published.

    INSTALLED_APPS += ["realtime.live"]

    from realtime import live
    from realtime.live import publish_html

html          publish_html: a rendered template or partial, as a publication
templatetags  {% live %}: a part of a page that follows a channel
rows          live models

The browser's half is `static/realtime/live.js`.

docs/live.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime import lazy_names

if TYPE_CHECKING:
    from realtime.live.html import apublish_html, publish_html
    from realtime.live.rows.changes import aannounce, announce
    from realtime.live.rows.feeds import Feed
    from realtime.live.rows.permission import ainvalidate, invalidate
    from realtime.live.rows.registration import model

__all__ = [
    "Feed",
    "aannounce",
    "ainvalidate",
    "announce",
    "apublish_html",
    "invalidate",
    "model",
    "publish_html",
]

_MODULES = {
    "Feed": "realtime.live.rows.feeds",
    "model": "realtime.live.rows.registration",
    **dict.fromkeys(("aannounce", "announce"), "realtime.live.rows.changes"),
    **dict.fromkeys(("ainvalidate", "invalidate"), "realtime.live.rows.permission"),
    **dict.fromkeys(("apublish_html", "publish_html"), "realtime.live.html"),
}
"""Name → the module that has it."""

__getattr__ = lazy_names(__name__, _MODULES)
