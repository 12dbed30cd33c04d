"""The Django app of the HTTP API."""

from __future__ import annotations

from realtime.config import parts


class APIConfig(parts.Part):
    """Named after its own module: the wheel ships it as `realtime.api`."""

    name = __name__.rpartition(".")[0]
    label = "realtime_api"
    verbose_name = "Realtime API"
