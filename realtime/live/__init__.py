"""HTML over channels: fragments of templates, and models whose changes are published.

    INSTALLED_APPS += ["realtime.live"]

    from realtime import live
    from realtime.live import publish_html

html        publish_html: a rendered template or partial, as a publication
templatetags  {% live %}: a part of a page that follows a channel
registration  model: ties a feed to a model
feeds       Feed: what is published of a row, and who may see it
row_channels  the channels of a row
permission  may_view as subscribe hook; invalidate
changes     signals of models, and announce
batches     from the changes of a transaction to publications
rounds      whether others published rows meanwhile
sending     to the engine, or into rows
checks      system checks

The browser's half is `static/realtime/live.js`.

docs/live.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime import lazy_names

if TYPE_CHECKING:
    from realtime.live.changes import aannounce, announce
    from realtime.live.feeds import Feed
    from realtime.live.html import apublish_html, publish_html
    from realtime.live.permission import ainvalidate, invalidate
    from realtime.live.registration import model

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
    "Feed": "realtime.live.feeds",
    "model": "realtime.live.registration",
    **dict.fromkeys(("aannounce", "announce"), "realtime.live.changes"),
    **dict.fromkeys(("ainvalidate", "invalidate"), "realtime.live.permission"),
    **dict.fromkeys(("apublish_html", "publish_html"), "realtime.live.html"),
}
"""Name → the module that has it."""

__getattr__ = lazy_names(__name__, _MODULES)
