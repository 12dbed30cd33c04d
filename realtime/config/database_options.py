"""The options of the PostgreSQL engine: their meaning together, and their mistakes.

Pure: makes no connection. Messages show no URL, which may hold a password.
"""

from __future__ import annotations

import re

from realtime.config.channel_options import META_TTL_HINT, META_TTL_MIN
from realtime.config.options import Config
from realtime.config.problems import Found, OptionRules

POSTGRESQL = "postgresql"
"""The name of the engine."""

LONGEST_CHANNEL = 1000
"""Bytes. An entry of an index has 2704, with the ID of a user beside the name."""

POLL_MAX = 10.0

_SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = re.compile(r"(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,62}")


def uses_postgresql(config: Config) -> bool:
    """Return whether the engine is PostgreSQL."""
    return config.engine == POSTGRESQL


def days_kept(config: Config) -> int:
    """Return for how many days nodes keep partitions: two more than the longest history."""
    channels = [config.channel, *config.namespaces.values()]
    longest = max(options.history_lifetime for options in channels)
    return int(longest // 86_400) + 2


def is_port(text: str) -> bool:
    """Return whether this is the number of a port."""
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 1 <= int(text) <= 65535


def _is_readable(url: str) -> bool:
    """Return whether libpq can read a URL, if it is installed."""
    try:
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.errors import ProgrammingError
    except ImportError:  # a site with another engine
        return True
    try:
        ports = str(conninfo_to_dict(url).get("port", ""))
    except ProgrammingError:
        return False
    return all(map(is_port, filter(None, ports.split(","))))


rules: OptionRules[[Config]] = OptionRules()
"""Rules about the options of the PostgreSQL engine."""


@rules("E062")
def _problems(config: Config) -> Found:
    for name in ("database_url", "database_notify_url"):
        if not (url := getattr(config, name)):
            continue
        form = "Write postgresql://user:password@host:port/database."
        if not url.startswith(_SCHEMES):
            yield f"{name} does not begin with postgresql://.", form
        elif not _is_readable(url):
            yield f"{name} is no URL that PostgreSQL can read.", form
    if config.database and config.database_url:
        yield (
            "Both database and database_url name a database.",
            "Remove one of them.",
        )
    if config.database_poll and config.database_notify_url:
        yield (
            "database_poll has no use with database_notify_url, past which nodes listen.",
            "Remove one of them.",
        )
    if config.database_poll > POLL_MAX:
        yield (
            f"database_poll must be at most {POLL_MAX:g}.",
            "What nodes look for is kept for a minute.",
        )
    if not 0 < config.channel_max_length <= LONGEST_CHANNEL and uses_postgresql(config):
        yield (
            f"channel_max_length must be from 1 to {LONGEST_CHANNEL} with the PostgreSQL engine.",
            "Its indexes and notifications have no room for longer names.",
        )
    if not _SCHEMA.fullmatch(config.database_schema):
        yield (
            f"database_schema {config.database_schema!r} is not a name for a schema of the site.",
            "Use up to 63 lower-case letters, digits and underscores, without pg_ in front.",
        )
    if 0 < config.database_history_meta_ttl < META_TTL_MIN:
        yield (
            f"database_history_meta_ttl must be at least {META_TTL_MIN}, or 0.",
            META_TTL_HINT,
        )
