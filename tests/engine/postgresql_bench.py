"""Engines over PostgreSQL on a bench: a schema for each prefix, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from realtime.engine.lists import Kind
from realtime.engine.nodes import NodeInfo
from realtime.engine.postgresql.database import Address
from realtime.engine.postgresql.engine import Addresses, PostgreSQLEngine
from realtime.engine.postgresql.schema import create, quoted
from realtime.engine.postgresql.streams import DEFAULT_KEEPING, Keeping
from realtime.errors import EngineUnavailable
from tests.conftest import new_word
from tests.database_server import DatabaseServer
from tests.engine.bench import NODE, NODE_LIFETIME, Bench

POSTGRESQL = "postgresql"

_CLOCK = """
CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
        + coalesce((SELECT value::bigint FROM {schema}.setting WHERE name = 'test_shift'), 0)
$$
"""
_SHIFT = """
INSERT INTO {schema}.setting AS s VALUES ('test_shift', %s)
ON CONFLICT (name) DO UPDATE SET value = s.value::bigint + excluded.value::bigint
"""


class PostgreSQLBench(Bench):
    """An engine over PostgreSQL, and what it keeps there."""

    engine: PostgreSQLEngine

    def __init__(
        self,
        server: DatabaseServer,
        prefix: str,
        keeping: Keeping,
        poll: float = 0.0,
        pooler: Address | None = None,
    ) -> None:
        """`pooler`: where statements go; rings go past it unless nodes poll."""
        self.server = server
        self.prefix = prefix
        self.address = address_of(server, prefix)
        self.poll = poll
        statements = pooler or self.address
        rings = statements if poll else self.address
        super().__init__(
            PostgreSQLEngine(Addresses(statements, rings, poll), keeping), self._elapse
        )

    async def _elapse(self, seconds: float) -> None:
        self.execute(_SHIFT, str(int(seconds * 1000)))

    def execute(self, query: str, *arguments: object) -> list[Any]:
        """Run a statement; `{schema}` stands for the schema of the bench. Return its rows."""
        with self.server.connect() as connection:
            cursor = connection.execute(query.replace("{schema}", quoted(self.prefix)), arguments)
            return list(cursor.fetchall()) if cursor.description else []

    async def idle(self) -> None:
        await self.engine.lists.idle()

    def overdue_at(self, node: str) -> int:
        ((overdue,),) = self.execute("SELECT overdue FROM {schema}.listing WHERE node = %s", node)
        return int(overdue)

    def write_name(self, kind: Kind, node: str, name: bytes) -> None:
        self.execute("INSERT INTO {schema}.listed VALUES (%s, %s, %s)", kind.value, name, node)

    def lose_list(self, kind: Kind, node: str) -> None:
        self.execute("DELETE FROM {schema}.listed WHERE kind = %s AND node = %s", kind.value, node)

    def create(self) -> None:
        """Create the tables, unless another bench has done it."""
        with self.server.connect() as connection:
            found = connection.execute(
                "SELECT FROM pg_namespace WHERE nspname = %s", (self.prefix,)
            ).fetchone()
            if found is None:
                create(connection, self.prefix)
                connection.execute(_CLOCK.replace("{schema}", quoted(self.prefix)))


def address_of(server: DatabaseServer, prefix: str) -> Address:
    """Return where the schema with this name is."""
    settings = server.settings
    parameters = {
        "host": settings["HOST"],
        "port": settings["PORT"],
        "user": settings["USER"],
        "dbname": settings["NAME"],
    }
    return Address(parameters, prefix, connect_timeout=2.0)


async def announces(bench: PostgreSQLBench) -> bool:
    """Announce the node of a bench; return whether PostgreSQL took it."""
    try:
        await bench.cluster.announce(NODE, NODE_LIFETIME)
    except EngineUnavailable:
        return False
    return True


@asynccontextmanager
async def postgresql_bench(
    server: DatabaseServer,
    prefix: str = "",
    node: NodeInfo = NODE,
    keeping: Keeping = DEFAULT_KEEPING,
    poll: float = 0.0,
    pooler: Address | None = None,
) -> AsyncIterator[PostgreSQLBench]:
    """Start an engine, and announce its node."""
    bench = PostgreSQLBench(server, prefix or new_word(), keeping, poll, pooler)
    bench.create()
    bench.receiver.uid = node.uid
    try:
        await bench.engine.start(bench.receiver, bench.receiver.uid)
        await bench.cluster.announce(node, NODE_LIFETIME)
        yield bench
    finally:
        await bench.engine.stop()
