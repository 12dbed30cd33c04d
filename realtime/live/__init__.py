"""HTML over channels: fragments of templates, and models whose changes are published.

    INSTALLED_APPS += ["realtime.live"]

    from realtime.live import publish_html

html        publish_html: a rendered template or partial, as a publication
templatetags  {% live %}: a part of a page that follows a channel

The browser's half is `static/realtime/live.js`.

docs/live.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime import lazy_names

if TYPE_CHECKING:
    from realtime.live.html import apublish_html, publish_html

__all__ = [
    "apublish_html",
    "publish_html",
]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "realtime.live.html"))
