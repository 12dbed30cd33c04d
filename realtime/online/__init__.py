"""Who is online: the users of the site that have a connection, at whichever process.

    INSTALLED_APPS += ["realtime.online"]

    from realtime.online import among, is_online, users

functions   users, among, is_online, last_seen
querysets   users of the site from user IDs, and back
app         what the service calls
seen        an optional app of its own: when each user was online last
templatetags  {% online_count %}

docs/online.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from realtime import lazy_names

if TYPE_CHECKING:
    from realtime.online.functions import (
        aamong,
        ais_online,
        alast_seen,
        among,
        ausers,
        is_online,
        last_seen,
        users,
    )

__all__ = [
    "aamong",
    "ais_online",
    "alast_seen",
    "among",
    "ausers",
    "is_online",
    "last_seen",
    "users",
]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "realtime.online.functions"))
