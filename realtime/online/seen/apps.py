"""The Django app that keeps when users were online last."""

from __future__ import annotations

from realtime.config import parts


class SeenConfig(parts.Part):
    """Has the table. The app `realtime.online` starts the writer."""

    name = "realtime.online.seen"
    label = "realtime_online_seen"
    verbose_name = "Realtime: when users were online last"
