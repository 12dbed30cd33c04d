"""The engine of the service: its name, and keys of the panel in it."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from realtime.config import sources
from realtime.engine.redis.opening import RunOnKey
from realtime.serving import serving

RunInRedis = RunOnKey


def server_name() -> str | Promise:
    """Return the name of the server of the engine."""
    return serving.server_name() or _("The engine")


def run_in_redis() -> RunInRedis | None:
    """Return what runs commands in the Redis of the service; None without Redis."""
    config = sources.current()
    return serving.engines(config).panel_keys(config)
