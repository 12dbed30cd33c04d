"""Operations of an engine, each with a name in it that the test chooses."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable

import pytest

from realtime.config.database_options import LONGEST_CHANNEL
from realtime.engine.base import Joined, Outgoing
from realtime.engine.limits import Debt
from realtime.engine.lists import MAX_LISTED_USER, Kind, pair
from realtime.engine.nodes import NodeInfo
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.engine.bench import KEPT, NODE, NODE_LIFETIME, PLAIN, Bench, comes_true
from tests.unit.parts import data, eventually

NAMES = (
    "a\0b",
    "\0",
    random.Random(1).randbytes(LONGEST_CHANNEL // 2).hex(),  # it cannot be compressed
    "".join(map(chr, random.Random(1).choices(range(0x800, 0xD800), k=LONGEST_CHANNEL // 3))),
    "100%s %(x)s %%",
    '\'; DROP TABLE "x"; -- $$ \\',
    "{schema} {a,b}",
    "a\nb\r\tc",
    "\U0001f600",
    "\uffff\u202e",
    "  ",
    "*?[a-z]",
)
"""Names of channels, users and nodes, all with a form in UTF-8."""

_numbers = itertools.count()


async def publications_arrive(bench: Bench, name: str) -> None:
    await bench.broker.subscribe(name)
    await bench.publish(name, 1)
    await bench.publish(name, 2, options=PLAIN)
    await bench.broker.notify(name, Joined(ClientInfo("7", "C1")))
    await eventually(lambda: bool(bench.receiver.joins[name]))
    assert bench.values(name) == [1, 2]
    await bench.broker.unsubscribe(name)


async def history_is_read(bench: Bench, name: str) -> None:
    position = await bench.publish(name, 1)
    assert await bench.kept_values(name) == [1]
    assert await bench.broker.positions([name]) == [position]
    assert position is not None
    await bench.broker.renew_epoch(name, position.epoch)
    await bench.broker.remove_history(name)
    assert await bench.kept_values(name) == []


async def publication_is_carried(bench: Bench, name: str) -> None:
    info = ClientInfo(name, name, data('"a"'))
    sent = Publication(data("1"), info, uid=name, tags={name: name})
    channel = f"channel{next(_numbers)}"
    await bench.broker.subscribe(channel)
    await bench.broker.publish(Outgoing(channel, sent, KEPT))
    [got] = await bench.received(channel, 1)
    history = await bench.broker.history(channel)
    assert (got.info, got.uid, got.tags) == (info, name, {name: name})
    assert history.publications[0].info == info
    assert history.top_uid == name


async def key_and_version_count_once(bench: Bench, name: str) -> None:
    publication = Publication(data("1"))
    once = [
        await bench.broker.publish(Outgoing("a", publication, KEPT, Once(name, 60)))
        for _ in range(2)
    ]
    versions = [
        await bench.broker.publish(Outgoing("b", publication, KEPT, None, Version(1, name)))
        for _ in range(2)
    ]
    assert [each.kept for each in [*once, *versions]] == [True, False, True, False]


async def epoch_is_expected(bench: Bench, name: str) -> None:
    channel = f"channel{next(_numbers)}"
    await bench.publish(channel, 1)
    position = StreamPosition(1, name)
    outgoing = Outgoing(channel, Publication(data("2")), KEPT, expect=position)
    assert not (await bench.broker.publish(outgoing)).kept


async def client_is_present(bench: Bench, name: str) -> None:
    info = ClientInfo(name, "C1")
    await bench.presence.add(name, [info], 60)
    assert dict(await bench.presence.get(name)) == {"C1": info}
    await bench.presence.remove(name, "C1")
    assert not await bench.presence.get(name)


async def name_is_listed(bench: Bench, name: str) -> None:
    user = name[:MAX_LISTED_USER]
    names = {Kind.CHANNELS: name, Kind.USERS: user, Kind.CHANNEL_USERS: pair(name, user)}
    for kind, listed in names.items():
        bench.engine.lists.add(kind, listed)
        await bench.idle()
        await comes_true(lambda: _is_listed(bench, kind, listed))  # noqa: B023
        assert listed in await bench.engine.lists.names(kind)
        bench.engine.lists.discard(kind, listed)
        await bench.idle()
        await eventually(lambda: listed in bench.receiver.lasts[kind])  # noqa: B023


async def _is_listed(bench: Bench, kind: Kind, name: str) -> bool:
    return (await bench.engine.lists.listed(kind, [name])) == [True]


async def user_is_blocked(bench: Bench, name: str) -> None:
    await bench.limits.block({name: 4e9})
    blocked = await bench.limits.blocked()
    assert blocked is not None
    assert blocked.ends == {name: 4e9}
    await bench.limits.block({name: 0})


async def user_is_counted(bench: Bench, name: str) -> None:
    assert await bench.limits.add_debts([Debt(name, name, 5.0, 5.0)], 0.0) == [
        pytest.approx(5, abs=1)
    ]
    places = await bench.limits.place_connections(NODE.uid, {name: 3}, 2)
    assert places.here == [2]


async def user_is_seen(bench: Bench, name: str) -> None:
    bench.last_seen.note()
    user = name[:MAX_LISTED_USER]
    bench.engine.lists.add(Kind.USERS, user)
    await bench.idle()
    bench.engine.lists.discard(Kind.USERS, user)
    await bench.idle()
    await comes_true(lambda: _is_seen(bench, user))
    seen = await bench.last_seen.users(10)
    assert seen[user] == await bench.last_seen.at(user)
    await bench.last_seen.forget(seen)
    assert await bench.last_seen.at(user) is None


async def _is_seen(bench: Bench, name: str) -> bool:
    return await bench.last_seen.at(name) is not None


async def name_is_claimed(bench: Bench, name: str) -> None:
    assert await bench.cluster.claim(name, "N1", 60) == "N1"
    assert await bench.cluster.claim(name, "N2", 60) == "N1"
    assert await bench.cluster.owner(name) == "N1"


async def question_is_answered(bench: Bench, name: str) -> None:
    survey = f"survey{next(_numbers)}"
    await bench.cluster.ask(survey, data("1"), 60)
    await bench.cluster.answer(survey, name.encode())
    assert await bench.cluster.answers(survey, 0) == [name.encode()]


async def node_is_named(bench: Bench, name: str) -> None:
    node = NodeInfo(NODE.uid, name, name, 2, 1, 3, 60)
    await bench.cluster.announce(node, NODE_LIFETIME)
    assert node in await bench.nodes()


Operation = Callable[[Bench, str], Awaitable[None]]
OF_ALL: list[Operation] = [
    publications_arrive,
    history_is_read,
    publication_is_carried,
    key_and_version_count_once,
    epoch_is_expected,
    client_is_present,
    name_is_listed,
    user_is_seen,
]
OF_SEVERAL_PROCESSES: list[Operation] = [
    user_is_blocked,
    user_is_counted,
    name_is_claimed,
    question_is_answered,
    node_is_named,
]
