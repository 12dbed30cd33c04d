"""The channel layer, under the path that sites name in CHANNEL_LAYERS."""

from realtime.engine.redis.layer import RedisChannelLayer

__all__ = ["RedisChannelLayer"]
