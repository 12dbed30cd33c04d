"""When users were online last, and users by their keys: the statements in each database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from realtime.config.reader import load
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.node.node import Node
from tests.database_server import DatabaseServer
from tests.engine.bench import comes_true
from tests.redis_server import RedisServer
from tests.unit.parts import RecordingClient, eventually

pytest_plugins = ["tests.database_fixtures"]

HOSTILE = ["7", "A", "a", "é", "e\u0301", "\U0001f600", "\0", "\\", '"', "x" * 255, "a "]
AT = 1_700_000_000_123
MOMENT = datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


@pytest.fixture
def models() -> Any:
    """The module of the model, when Django has loaded its apps."""
    from realtime.online.seen import models

    return models


@pytest.fixture
def use_server(
    database_server: DatabaseServer, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Let this process write into a server, as its only database."""
    with django_db_blocker.unblock():
        if database_server.name == "mariadb":
            import pymysql

            pymysql.install_as_MySQLdb()
        default = connections["default"]
        settings = default.settings_dict | {"OPTIONS": {}} | database_server.settings
        before = connections.settings["default"]
        del connections["default"]
        connections.settings["default"] = settings
        for app in ("auth", "realtime_online_seen"):
            call_command("migrate", app, verbosity=0)
        yield
        connections["default"].close()
        connections.settings["default"] = before
        connections["default"] = default


def write_and_find(models: Any) -> None:
    models.write(dict.fromkeys(HOSTILE, AT))
    models.write({"7": AT + 1000, "A": AT + 2000})

    assert models.find("7") == MOMENT.replace(second=21)
    assert models.find("A") == MOMENT.replace(second=22)
    assert [models.find(user) for user in HOSTILE if user not in "7A"] == [MOMENT] * 9
    assert models.find("unknown") is None
    assert models.LastSeen.objects.count() == len(set(HOSTILE))


@pytest.mark.django_db
def test_any_user_id_is_written_and_found(models: Any) -> None:
    write_and_find(models)


@pytest.mark.usefixtures("use_server")
def test_database_servers_write_and_find_them_too(models: Any) -> None:
    write_and_find(models)


@pytest.mark.usefixtures("use_server")
def test_database_servers_find_rows_by_their_exact_key_alone(models: Any) -> None:
    from realtime.online.querysets import with_keys

    text = "exact key of thirty-two letters."
    stored = models.LastSeen.objects.create(key=text, user="7", at=MOMENT)
    group = Group.objects.create(name="people")
    rows = models.LastSeen.objects.all()

    for other in (text.upper(), text + "x", text + " ", text + "x" * 255):
        assert list(with_keys(rows, [other])) == []
        assert list(with_keys(rows, [other, text])) == [stored]
    assert list(with_keys(Group.objects.all(), [group.pk, 2**31, -(2**31) - 1, 2**63 - 1])) == [
        group
    ]


@pytest.mark.django_db
def test_many_users_are_few_statements(models: Any) -> None:
    users = {str(number): AT for number in range(1000)}
    with CaptureQueriesContext(connection) as queries:
        models.write(users)
    inserts = [query for query in queries if query["sql"].startswith("INSERT")]
    assert 0 < len(inserts) <= 4


@pytest.fixture
async def nodes(redis_server: RedisServer, unique: str) -> AsyncIterator[list[Node]]:
    """Two nodes whose users are listed."""
    made = []
    for _ in range(2):
        layer = RedisChannelLayer(hosts=[redis_server.url], prefix=unique)
        engine = RedisEngine(layer.bus, unique)
        made.append(Node(load({}), engine, lists_users=True))
    for node in made:
        await node.start()
    yield made
    for node in made:
        await node.stop()


async def go_offline(node: Node, *users: str) -> None:
    """Connect users and close them."""
    clients = [RecordingClient(f"C{user}", user) for user in users]
    for client in clients:
        node.hub.add(client)
    engine: Any = node._engine
    await engine.lists.idle()
    for client in clients:
        node.hub.remove(client)
    await engine.lists.idle()


class Written:
    """What the writers wrote, in place of a database."""

    def __init__(self) -> None:
        self.calls: list[dict[str, int]] = []
        self.fails = False

    def __call__(self, seen: dict[str, int]) -> None:
        if self.fails:
            raise DatabaseError("the database is away")
        self.calls.append(seen)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    from realtime.online.seen import writer

    calls = Written()
    monkeypatch.setattr(writer, "_write", calls)
    return calls


async def test_one_node_writes_who_went_offline_at_any(nodes: list[Node], written: Written) -> None:
    from realtime.online.seen.writer import Writer

    writers = [Writer(node, 0.1) for node in nodes]
    for writer in writers:
        writer.start()
    await go_offline(nodes[0], "7", "8")
    await go_offline(nodes[1], "9")

    await eventually(lambda: len({user for call in written.calls for user in call}) == 3)

    assert sorted(user for call in written.calls for user in call) == ["7", "8", "9"]
    await comes_true(lambda: _is_written(nodes[0]))


async def _is_written(node: Node) -> bool:
    assert node.seen is not None
    return not await node.seen.users(10)


async def test_database_that_was_away_gets_them_later(nodes: list[Node], written: Written) -> None:
    from realtime.online.seen.writer import Writer

    written.fails = True
    writer = Writer(nodes[0])
    writer.start()
    await go_offline(nodes[0], "7")
    await writer._write()
    assert written.calls == []

    written.fails = False
    await writer._write()
    assert [list(call) for call in written.calls] == [["7"]]


async def test_writes_that_fail_one_after_another_are_logged_once(
    nodes: list[Node],
    written: Written,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from realtime.online.seen.writer import WRITE_INTERVAL, Writer

    writer = Writer(nodes[0])
    assert nodes[0].seen is not None
    nodes[0].seen.note()
    now = 1000.0
    monkeypatch.setattr("realtime.metrics.time", SimpleNamespace(monotonic=lambda: now))

    for outage in (1, 2):
        written.fails = True
        await go_offline(nodes[0], "7")
        for _ in range(3):
            now += WRITE_INTERVAL + 1
            await writer._write()
        written.fails = False
        await writer._write()
        assert caplog.text.count("the database is away") == outage


async def test_nothing_is_written_while_nobody_goes(nodes: list[Node], written: Written) -> None:
    from realtime.online.seen.writer import Writer

    writer = Writer(nodes[0])
    writer.start()
    nodes[0].hub.add(RecordingClient("C", "7"))
    engine: Any = nodes[0]._engine
    await engine.lists.idle()
    for _ in range(3):
        await writer._write()

    assert written.calls == []
