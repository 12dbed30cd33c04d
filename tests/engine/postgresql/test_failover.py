"""A replica is promoted: streams begin another epoch, as it may lack publications."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from realtime.engine.base import Outgoing, Published
from realtime.engine.once import Once
from realtime.engine.postgresql.schema import create
from realtime.protocol.messages import Publication, StreamPosition
from tests.chaos.postgresql import ChaosPostgres
from tests.database_server import TIMEOUT, DatabaseServer
from tests.database_starting import require_server
from tests.engine.bench import KEPT
from tests.engine.postgresql_bench import PostgreSQLBench, postgresql_bench
from tests.server import wait_until
from tests.unit.parts import data, eventually, position_of


@pytest.fixture
def pair() -> Iterator[tuple[ChaosPostgres, ChaosPostgres]]:
    """A primary, and a replica for which commits do not wait."""
    require_server(ChaosPostgres)
    servers = [ChaosPostgres()]
    try:
        servers[0].create()
        servers[0].start()
        servers.append(servers[0].replica(synchronous=False))
        yield servers[0], servers[1]
    finally:
        for server in servers:
            server.discard()


def catch_up(primary: ChaosPostgres, replica: ChaosPostgres) -> None:
    """Return when the replica has what was committed until now."""
    ((lsn,),) = primary.execute("SELECT pg_current_wal_flush_lsn()")
    query = f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'"
    wait_until(lambda: replica.execute(query) == [(True,)], TIMEOUT, "a replica with everything")


async def publish(bench: PostgreSQLBench, number: int, **options: object) -> Published:
    publication = Publication(data(str(number)), uid=str(number))
    return await bench.broker.publish(Outgoing("a", publication, KEPT, **options))  # type: ignore[arg-type]


async def epochs(bench: PostgreSQLBench, once: Once) -> list[str]:
    """Return the epoch of the channel "a" in each way in which it leaves the engine."""
    top = await position_of(bench.broker, "a")
    never = StreamPosition(top.offset + 5, top.epoch)
    refused = await publish(bench, 0, expect=never)
    repeated = await publish(bench, 0, once=once)
    (position,) = await bench.broker.positions(["a"])
    await bench.broker.subscribe("a")
    published = await publish(bench, 9)
    await eventually(lambda: bool(bench.receiver.publications["a"]))
    (_, delivered), *_ = bench.receiver.publications["a"]
    assert not refused.kept
    assert not repeated.kept
    found = (refused.position, repeated.position, position, published.position, delivered)
    return [top.epoch, *(each.epoch for each in found if each is not None)]


async def test_epoch_changes_with_a_promotion_and_with_nothing_else(
    pair: tuple[ChaosPostgres, ChaosPostgres], unique: str
) -> None:
    primary, replica = pair
    once = Once("once", 1000)
    async with postgresql_bench(primary, unique) as bench:
        await publish(bench, 1, once=once)
        before = await epochs(bench, once)
        catch_up(primary, replica)
        replica.leave()
        primary.restart()
    async with postgresql_bench(primary, unique) as bench:
        await publish(bench, 3)
        lost = await publish(bench, 4)
        quiet = await position_of(bench.broker, "quiet")
    primary.kill()
    replica.promote()
    async with postgresql_bench(replica, unique) as bench:
        quiet_after = await position_of(bench.broker, "quiet")
        after = await epochs(bench, once)
    replica.restart()
    async with postgresql_bench(replica, unique) as bench:
        restarted = await position_of(bench.broker, "a")

    assert lost.position is not None
    assert {*before} == {lost.position.epoch}
    assert len(before) == len(after) == 6
    assert {*after} == {restarted.epoch}
    assert lost.position.epoch != restarted.epoch
    assert quiet.epoch != quiet_after.epoch


def of(servers: tuple[ChaosPostgres, ChaosPostgres]) -> DatabaseServer:
    """Return the one of two servers that accepts writes."""
    ports = ",".join(str(server.port) for server in servers)
    settings = servers[0].settings | {"HOST": "127.0.0.1,127.0.0.1", "PORT": ports}
    return cast(DatabaseServer, SimpleNamespace(settings=settings, connect=servers[0].connect))


async def test_node_learns_of_the_epoch_and_gets_nothing_twice(
    pair: tuple[ChaosPostgres, ChaosPostgres], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = pair
    advances: list[Any] = []
    async with postgresql_bench(of(pair), unique) as bench:
        monkeypatch.setattr(
            bench.receiver, "on_advance", lambda _, position: advances.append(position)
        )
        await bench.broker.subscribe("a")
        before = await bench.publish("a", 1, 2)
        await bench.received("a", 2)
        catch_up(primary, replica)

        primary.kill()
        replica.promote()
        await eventually(lambda: bool(bench.receiver.resumptions))
        await eventually(lambda: bool(advances))
        top = await position_of(bench.broker, "a")
        after = await bench.publish("a", 3)
        await bench.received("a", 3)

        assert advances == [top]
        assert before is not None
        assert before.offset == top.offset
        assert before.epoch != top.epoch
        assert bench.values("a") == [1, 2, 3]
        assert bench.receiver.publications["a"][-1][1] == after


async def test_epoch_of_channels_without_a_stream_is_renewed(
    pair: tuple[ChaosPostgres, ChaosPostgres], unique: str
) -> None:
    _, replica = pair
    async with postgresql_bench(pair[0], unique) as bench:
        await position_of(bench.broker, "quiet")
        catch_up(*pair)
    replica.promote()
    async with postgresql_bench(replica, unique) as bench:
        lost = await position_of(bench.broker, "quiet")
        await bench.broker.renew_epoch("quiet", lost.epoch)
        assert (await position_of(bench.broker, "quiet")).epoch != lost.epoch


async def test_publications_of_an_older_timeline_are_no_news(postgresql: PostgreSQLBench) -> None:
    position = await postgresql.publish("a", 1, 2)
    assert position is not None
    stored, _, timeline = position.epoch.partition("-")
    query = "SELECT top, epoch, off FROM {schema}.news(%s, %s, %s, 5)"

    for older in ("", "-1A"):
        rows = postgresql.execute(query, [b"a"], [2], [stored + older])
        assert rows == [(2, position.epoch, None)]
    assert timeline == "2"


def test_server_that_refuses_to_name_its_timeline_adds_nothing(
    postgresql_server: DatabaseServer, unique: str
) -> None:
    ask = f"SELECT {unique}.timeline()"
    with postgresql_server.connect() as connection:  # rolled back
        create(connection, unique)
        assert connection.execute(ask).fetchone() == ("-2",)
        connection.execute(f"CREATE ROLE {unique}")
        connection.execute(f"GRANT USAGE ON SCHEMA {unique} TO {unique}")
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn FROM PUBLIC")
        connection.execute(f"SET LOCAL ROLE {unique}")
        assert connection.execute(ask).fetchone() == ("",)
        connection.rollback()


def test_replica_names_no_timeline(pair: tuple[ChaosPostgres, ChaosPostgres], unique: str) -> None:
    primary, replica = pair
    with primary.connect() as connection:
        create(connection, unique)
    catch_up(primary, replica)
    ask = f"SELECT {unique}.timeline()"
    assert replica.execute(ask) == [("",)]
    replica.execute("SELECT pg_promote()")
    assert replica.execute(ask) == [("-2",)]
