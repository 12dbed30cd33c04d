"""Rows that have expired are removed by one node, in small batches."""

from __future__ import annotations

import asyncio

import pytest

from realtime.engine.limits import Debt
from realtime.engine.nodes import NodeInfo
from realtime.engine.postgresql import cluster, engine
from realtime.engine.postgresql.cluster import PostgreSQLCluster
from realtime.protocol.messages import ClientInfo
from tests.engine.bench import NODE, NODE_LIFETIME, SECOND_NODE, Bench
from tests.engine.conftest import OpenNode
from tests.engine.postgresql_bench import POSTGRESQL, PostgreSQLBench
from tests.unit.parts import data

TABLES = ("presence", "survey", "answer", "owner", "swept", "node", "debt", "place")


async def clean(bench: Bench, node: NodeInfo = NODE) -> None:
    """Do what a node does each few seconds."""
    assert isinstance(bench.engine.cluster, PostgreSQLCluster)
    await bench.cluster.announce(node, NODE_LIFETIME)
    await bench.engine.cluster.remove_expired(node.uid)


def rows_of(bench: PostgreSQLBench, *tables: str) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {
        table: bench.execute(f"SELECT count(*) FROM {{schema}}.{table}")[0][0] for table in tables
    }


async def test_nothing_is_left_of_what_has_expired(postgresql: PostgreSQLBench) -> None:
    bench = postgresql
    await bench.presence.add("channel", [ClientInfo("7", f"C{n}") for n in range(20)], 60)
    await bench.cluster.claim("name", "N1", 60)
    await bench.cluster.ask("survey", data("1"), 10)
    await bench.cluster.answer("survey", b"1")
    await bench.limits.add_debts([Debt("*", "7", 5, 10)], 0)
    await bench.cluster.announce(SECOND_NODE, 100)
    await bench.limits.place_connections("N2", {"7": 1}, 5)
    before = rows_of(bench, *TABLES)
    await bench.elapse(90_000)

    await clean(bench)

    assert all(number for table, number in before.items() if table != "swept")
    # the node that removed them, and its claim, are alive
    alive = dict.fromkeys(TABLES, 0) | {"node": 1, "owner": 1}
    assert rows_of(bench, *TABLES) == alive


async def test_expired_rows_are_removed_where_partitions_cannot_be_made(
    postgresql: PostgreSQLBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, done = postgresql, asyncio.Event()
    monkeypatch.setattr(engine, "HOUSEKEEPING_INTERVAL", 0.0)
    bench.execute("DROP FUNCTION {schema}.keep_house")
    remove = bench.engine.cluster.remove_expired

    async def remove_expired(uid: str) -> None:
        await remove(uid)
        done.set()

    monkeypatch.setattr(bench.engine.cluster, "remove_expired", remove_expired)
    keeping = asyncio.create_task(bench.engine._keep_house(NODE.uid))
    async with asyncio.timeout(60):
        await done.wait()
    keeping.cancel()


async def test_what_lives_is_left(postgresql: PostgreSQLBench) -> None:
    bench = postgresql
    await bench.presence.add("channel", [ClientInfo("7", "C1")], 600)
    await bench.limits.place_connections("N1", {"7": 1}, 5)
    await bench.elapse(500)

    await clean(bench)

    assert set(await bench.presence.get("channel")) == {"C1"}
    assert rows_of(bench, "place") == {"place": 1}


async def test_one_cleanup_removes_a_bounded_number(
    postgresql: PostgreSQLBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = postgresql
    monkeypatch.setattr(cluster, "EXPIRED_AT_ONCE", 10)
    monkeypatch.setattr(cluster, "EXPIRED_STATEMENTS", 2)
    await bench.presence.add("channel", [ClientInfo("7", f"C{n}") for n in range(50)], 60)
    await bench.elapse(100)
    left = []
    for _ in range(3):
        await clean(bench)
        left.append(rows_of(bench, "presence")["presence"])
    assert left == [30, 10, 0]


async def test_one_node_removes_rows(postgresql: PostgreSQLBench, open_node: OpenNode) -> None:
    other = await open_node(POSTGRESQL, postgresql.prefix, SECOND_NODE)
    await clean(postgresql)
    await postgresql.presence.add("channel", [ClientInfo("7", "C1")], 5)
    await postgresql.elapse(10)

    await clean(other, SECOND_NODE)
    left = rows_of(postgresql, "presence")
    await postgresql.elapse(cluster.CLEANER_LIFETIME)
    await clean(other, SECOND_NODE)

    assert left == {"presence": 1}
    assert rows_of(postgresql, "presence") == {"presence": 0}


async def test_removal_and_refreshing_at_once_lose_nothing(postgresql: PostgreSQLBench) -> None:
    bench = postgresql
    clients = [ClientInfo("7", f"C{n}") for n in range(100)]
    await bench.presence.add("channel", clients, 60)
    await bench.elapse(100)

    await asyncio.gather(
        *(bench.presence.add("channel", [client], 60) for client in clients),
        *(clean(bench) for _ in range(10)),
    )

    assert len(await bench.presence.get("channel")) == 100
