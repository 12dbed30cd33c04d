"""Checks of the engine and the channel layer: whether they fit, and what can be lost."""

from __future__ import annotations

from django.conf import settings

from realtime.checks.table import Found, check
from realtime.config import sources
from realtime.config.redis_options import uses_redis
from realtime.config.sources import OUR_LAYER, Report
from realtime.engine import factory


@check("realtime.W007", f"Use {OUR_LAYER}, or leave channel_layer empty.")
def check_channel_layer(report: Report) -> Found:
    """W007: `channel_layer` is not this package's own: publishing takes two steps."""
    config = report.config
    backend = sources.channel_layers().get(config.channel_layer)
    is_foreign = backend not in (None, OUR_LAYER) and not any(sources.layer_problems(config))
    if uses_redis(config) and is_foreign:
        yield (
            f"With the channel layer {config.channel_layer!r}, publishing takes two steps and one"
            " more round trip, and publications arrive in any order until gaps are filled."
        )


@check("realtime.W008", "Set redis_url or engine; silence realtime.W008 for one process only.")
def check_memory_engine(report: Report) -> Found:
    """W008: the site has a Redis channel layer, but the engine is memory."""
    redis_layers = [
        repr(alias)
        for alias, backend in sources.channel_layers().items()
        if backend == OUR_LAYER or backend.startswith("channels_redis.")
    ]
    if redis_layers and not settings.DEBUG and not factory.is_shared(report.config):
        yield (
            f"CHANNEL_LAYERS has a Redis layer ({', '.join(redis_layers)}), but the engine is"
            " memory: publications do not reach other processes."
        )


@check(
    "realtime.W009",
    "Turn redis_epoch_per_run on, or silence realtime.W009 if you accept that.",
)
def check_sentinel(report: Report) -> Found:
    """W009: Sentinel or a Redis Cluster without `redis_epoch_per_run`."""
    config = report.config
    fails_over = config.redis_sentinels or config.redis_cluster_addrs
    if uses_redis(config) and fails_over and not config.redis_epoch_per_run:
        yield "A failover may lose the last publications, and clients would not notice."
