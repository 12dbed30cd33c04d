"""The modules that need no Django, those that need no event loop either, and Django's side."""

from __future__ import annotations

from tests.imports import files, module_name, within

PURE = (
    "realtime.protocol",
    "realtime.payload",
    "realtime.errors",
    "realtime.metrics",
    "realtime.channel_rules",
    "realtime.config.channel_options",
    "realtime.config.channel_rights",
    "realtime.config.channel_types",
    "realtime.config.database_options",
    "realtime.config.expressions",
    "realtime.config.fields",
    "realtime.config.limit_options",
    "realtime.config.merging",
    "realtime.config.name_patterns",
    "realtime.config.names",
    "realtime.config.nested",
    "realtime.config.nested_names",
    "realtime.config.options",
    "realtime.config.origins",
    "realtime.config.problems",
    "realtime.config.proxy_options",
    "realtime.config.rates",
    "realtime.config.reader",
    "realtime.config.redis_options",
    "realtime.config.rules",
    "realtime.config.token_options",
    "realtime.streams.recovery",
    "realtime.streams.order",
    "realtime.streams.tag_filters",
    "realtime.cluster.control",
    "realtime.cluster.survey",
    "realtime.auth.claims",
    "realtime.clients.checks",
    "realtime.clients.rules",
    "realtime.clients.session",
    "realtime.node.hooks",
    "realtime.engine.base",
    "realtime.engine.nodes",
    "realtime.engine.epochs",
    "realtime.engine.limits",
    "realtime.engine.lists",
    "realtime.engine.seen",
    "realtime.engine.maps",
    "realtime.engine.once",
    "realtime.engine.versions",
    "realtime.engine.records",
    "realtime.engine.redis.messages",
    "realtime.engine.redis.keys",
    "realtime.engine.redis.partitions",
    "realtime.redis.slots",
    "realtime.redis.commands",
    "realtime.operators.questions",
)
"""No event loop, no I/O, no Django."""

CORE = (
    "realtime.clients",
    "realtime.node",
    "realtime.cluster",
    "realtime.streams",
    "realtime.engine",
    "realtime.redis",
    "realtime.auth",
    "realtime.protocol",
    "realtime.config",
    "realtime.channel_rules",
    "realtime.payload",
    "realtime.errors",
    "realtime.timers",
    "realtime.metrics",
)
"""The service itself. It runs where Django is not installed."""

NOT_CORE = (
    "realtime.config.error_reports",
    "realtime.config.parts",
    "realtime.config.sources",
    "realtime.config.site_databases",
    "realtime.engine.factory",
    "realtime.engine.postgresql.opening",
    "realtime.engine.redis.foreign",
    "realtime.engine.redis.layer",
    "realtime.engine.redis.opening",
)
"""Modules in these rooms that read the configuration in force, or are what Django or Channels asks
for."""

SITE_LIBRARIES = ("django", "asgiref", "rest_framework", "channels", "channels_redis", "daphne")
"""What a site brings. The core needs none of it."""


def core_modules() -> list[str]:
    return [
        name
        for name in map(module_name, files("realtime"))
        if within(name, *CORE) and not within(name, *NOT_CORE)
    ]


def pure_modules() -> list[str]:
    return [name for name in map(module_name, files("realtime")) if within(name, *PURE)]


DJANGO_SIDE = (
    "realtime.config.sources",
    "realtime.config.site_databases",
    "realtime.checks",
    "realtime.apps",
    "realtime.asgi",
    "realtime.server_api.transactions",
    "realtime.server_api.durable",
    "realtime.server_api.online",
    "realtime.database",
    "realtime.pending",
    "realtime.online",
    "realtime.live",
    "realtime.answers",
    "realtime.tools",
    "realtime.debug",
    "realtime.config.error_reports",
    "realtime.config.parts",
    "realtime.hooks",
    "realtime.logout",
    "realtime.management",
    "realtime.monitoring.pending_rows",
    "realtime.monitoring.urls",
    "realtime.monitoring.views",
    "realtime.pages",
    "realtime.signals",
    "realtime.templatetags",
    "realtime.testing",
    "realtime.tokens",
    "realtime.transports.private_pages",
    "realtime.typed",
    "realtime.urls",
    "realtime.views",
)

ROOMS_OF_APPS = (
    *(f"realtime.answers.{name}" for name in ("forms", "http", "mcp", "producer", "sweeper")),
    "realtime.live.rows",
    "realtime.live.rows.filling",
    "realtime.live.rows.follows",
    "realtime.live.rows.permission",
    "realtime.pending.invalid_rows",
    "realtime.pending.retries",
    "realtime.pending.within",
)
"""Those below an app that have an idea of their own."""
