"""Checks of the engine and the channel layer: whether they fit, and what can be lost."""

from __future__ import annotations

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from realtime.config import sources
from realtime.config.redis_options import uses_redis
from realtime.config.sources import Report


def check_channel_layer(report: Report) -> list[CheckMessage]:
    """W007: `channel_layer` is not this package's own: publishing takes two steps."""
    config = report.config
    backend = sources.channel_layers().get(config.channel_layer)
    if (
        not uses_redis(config)
        or sources.layer_problems(config)
        or backend in (None, sources.OUR_LAYER)
    ):
        return []
    return [
        checks.Warning(
            f"With the channel layer {config.channel_layer!r}, publishing takes two steps and one"
            " more round trip, and publications arrive in any order until gaps are filled.",
            hint=f"Use {sources.OUR_LAYER}, or leave channel_layer empty.",
            id="realtime.W007",
        )
    ]


def check_memory_engine(report: Report) -> list[CheckMessage]:
    """W008: the site has a Redis channel layer, but the engine is memory."""
    redis_layers = [
        alias
        for alias, backend in sources.channel_layers().items()
        if backend == sources.OUR_LAYER or backend.startswith("channels_redis.")
    ]
    if settings.DEBUG or uses_redis(report.config) or not redis_layers:
        return []
    return [
        checks.Warning(
            f"CHANNEL_LAYERS has a Redis layer ({', '.join(map(repr, redis_layers))}), but the"
            " engine is memory: publications do not reach other processes.",
            hint="Set redis_url, or silence realtime.W008 if the site has one process only.",
            id="realtime.W008",
        )
    ]


def check_sentinel(report: Report) -> list[CheckMessage]:
    """W009: Sentinel or a Redis Cluster without `redis_epoch_per_run`."""
    config = report.config
    fails_over = config.redis_sentinels or config.redis_cluster_addrs
    if not uses_redis(config) or not fails_over or config.redis_epoch_per_run:
        return []
    return [
        checks.Warning(
            "A failover may lose the last publications, and clients would not notice.",
            hint="Turn redis_epoch_per_run on, or silence realtime.W009 if you accept that.",
            id="realtime.W009",
        )
    ]
