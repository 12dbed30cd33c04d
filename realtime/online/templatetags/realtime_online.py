"""Template tags of `realtime.online`.

{% load realtime_online %}{% online_count "room:1" %}
"""

from __future__ import annotations

import logging

from django import template

from realtime import presence_stats
from realtime.errors import EngineUnavailable

logger = logging.getLogger("realtime.pages")

register = template.Library()


@register.simple_tag
def online_count(channel: str) -> int | str:
    """Return the number of users in a channel with presence; "" while the engine is away.

    The page is as old as its cache. Anonymous visitors count as one user.
    """
    try:
        return presence_stats(channel)["num_users"]
    except EngineUnavailable as error:
        logger.warning("{%% online_count %%} writes nothing: %s", error)
        return ""
