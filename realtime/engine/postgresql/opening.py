"""What the PostgreSQL engines of a process are made of, as the options say; see `engine.factory`.

The driver is loaded with the first engine, as sites with another one need none.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from realtime import channel_rules
from realtime.config import site_databases
from realtime.config.database_options import days_kept
from realtime.config.options import Config
from realtime.engine.base import Engine, Store
from realtime.engine.epochs import glanced_lifetime

if TYPE_CHECKING:
    from realtime.engine.postgresql.database import BlockingDatabase
    from realtime.engine.postgresql.engine import Addresses
    from realtime.engine.postgresql.streams import Keeping

CONNECT_TIMEOUT = 2.0
"""Seconds to get a connection, and to open it. libpq has no less."""
TIMEOUT = 5.0
"""Seconds that a statement may take."""


class PostgreSQLEngines:
    """Makes the PostgreSQL engines of one process. Each has connections of its own."""

    is_shared = True
    server = "PostgreSQL"

    @staticmethod
    def answer_timeout(config: Config) -> float:
        return TIMEOUT

    def engine(self, config: Config) -> Engine:
        from realtime.engine.postgresql.engine import PostgreSQLEngine

        return PostgreSQLEngine(_addresses(config), _keeping(config))

    def blocking_store(self, config: Config, timeout: float | None = None) -> Store:
        from realtime.engine.postgresql.engine import PostgreSQLStore

        return PostgreSQLStore(_addresses(config, timeout), _keeping(config))

    def labels(self, config: Config) -> list[str]:
        return [_addresses(config).statements.label]

    def panel_keys(self, config: Config) -> None:
        return None

    def redis(self, config: Config) -> None:
        return None

    def database(self, config: Config) -> BlockingDatabase:
        from realtime.engine.postgresql.database import BlockingDatabase

        return BlockingDatabase(_addresses(config).statements)


def _addresses(config: Config, timeout: float | None = None) -> Addresses:
    from realtime.engine.postgresql.database import Address
    from realtime.engine.postgresql.engine import Addresses

    pooled = bool(config.database_notify_url or config.database_poll)
    parameters = (
        {"conninfo": config.database_url}
        if config.database_url
        else site_databases.database_parameters(config.database, pooled)
    )
    statements = Address(
        parameters,
        config.database_schema,
        CONNECT_TIMEOUT if timeout is None else timeout,
        TIMEOUT if timeout is None else timeout,
        pooled,
    )
    rings = statements
    if config.database_notify_url:
        parameters = {"conninfo": config.database_notify_url}
        rings = statements._replace(parameters=parameters, pooled=False)
    return Addresses(statements, rings, config.database_poll)


def _keeping(config: Config) -> Keeping:
    from realtime.engine.postgresql.streams import Keeping

    return Keeping(
        config.database_history_meta_ttl,
        glanced_lifetime(config),
        days_kept(config),
        partial(channel_rules.meta_ttl, config),
        glanced_lifetime(config),
    )
