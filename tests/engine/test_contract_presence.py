"""The contract of `engine.base.Engine`, for every engine there is: presence and channels."""

from __future__ import annotations

import asyncio

import pytest

from realtime.protocol.messages import ClientInfo
from tests.engine.bench import KEPT, NODE, Bench
from tests.unit.parts import data

FIRST = ClientInfo("17", "C1", data('{ "a": 1.0 }'), data("2"))
SECOND = ClientInfo("18", "C2")


async def test_client_that_was_added_is_present(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST], 60)

    assert dict(await engine.engine.presence(unique)) == {"C1": FIRST}


async def test_several_clients_may_be_added_at_once(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST, SECOND], 60)

    assert dict(await engine.engine.presence(unique)) == {"C1": FIRST, "C2": SECOND}


async def test_adding_nobody_is_nothing(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [], 60)

    assert dict(await engine.engine.presence(unique)) == {}


async def test_nobody_is_present_in_an_unknown_channel(engine: Bench, unique: str) -> None:
    assert dict(await engine.engine.presence(unique)) == {}


async def test_presence_is_kept_by_channel(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(f"{unique}-a", [FIRST], 60)
    await engine.engine.add_presence(f"{unique}-b", [SECOND], 60)

    assert set(await engine.engine.presence(f"{unique}-a")) == {"C1"}
    assert set(await engine.engine.presence(f"{unique}-b")) == {"C2"}


async def test_client_that_was_removed_is_gone(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST, SECOND], 60)

    await engine.engine.remove_presence(unique, "C1")

    assert set(await engine.engine.presence(unique)) == {"C2"}


@pytest.mark.parametrize("others", [True, False], ids=["others present", "unknown channel"])
async def test_removing_a_client_that_is_not_there_is_nothing(
    engine: Bench, unique: str, others: bool
) -> None:
    if others:
        await engine.engine.add_presence(unique, [FIRST], 60)

    await engine.engine.remove_presence(unique, "nobody")

    assert set(await engine.engine.presence(unique)) == ({"C1"} if others else set())


async def test_presence_that_is_not_renewed_expires(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST], 100)

    await engine.elapse(90)
    assert set(await engine.engine.presence(unique)) == {"C1"}
    await engine.elapse(111)

    assert dict(await engine.engine.presence(unique)) == {}


async def test_presence_that_is_renewed_stays(engine: Bench, unique: str) -> None:
    for _ in range(3):
        await engine.engine.add_presence(unique, [FIRST], 100)
        await engine.elapse(90)

    assert set(await engine.engine.presence(unique)) == {"C1"}


async def test_each_client_expires_by_itself(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST], 100)
    await engine.elapse(50)
    await engine.engine.add_presence(unique, [SECOND], 100)

    await engine.elapse(60)

    assert set(await engine.engine.presence(unique)) == {"C2"}


async def test_client_with_a_short_lifetime_expires_beside_one_with_a_long(
    engine: Bench, unique: str
) -> None:
    await engine.engine.add_presence(unique, [FIRST], 600)
    await engine.engine.add_presence(unique, [SECOND], 100)

    await engine.elapse(111)

    assert set(await engine.engine.presence(unique)) == {"C1"}


async def test_renewal_brings_the_info_up_to_date(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [ClientInfo("17", "C1", data("1"))], 60)

    await engine.engine.add_presence(unique, [ClientInfo("17", "C1", data("2"))], 60)

    assert (await engine.engine.presence(unique))["C1"].conn_info == data("2")


async def test_client_that_expired_may_come_back(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST], 100)
    await engine.elapse(111)

    await engine.engine.add_presence(unique, [FIRST], 100)

    assert set(await engine.engine.presence(unique)) == {"C1"}


async def test_presence_read_before_is_not_changed_afterwards(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST], 60)
    before = await engine.engine.presence(unique)

    await engine.engine.remove_presence(unique, "C1")

    assert set(before) == {"C1"}


async def test_concurrent_changes_of_presence_are_all_made(engine: Bench, unique: str) -> None:
    await engine.engine.add_presence(unique, [FIRST], 60)

    await asyncio.gather(
        engine.engine.remove_presence(unique, "C1"),
        *(
            engine.engine.add_presence(unique, [ClientInfo("17", f"D{number}")], 60)
            for number in range(20)
        ),
    )

    assert set(await engine.engine.presence(unique)) == {f"D{number}" for number in range(20)}


# channels and nodes


async def test_channels_are_those_with_a_subscriber(engine: Bench, unique: str) -> None:
    await engine.engine.subscribe(f"{unique}-a")
    await engine.engine.subscribe(f"{unique}-b")
    await engine.publish(f"{unique}-nobody", 1, options=KEPT)

    listed = await engine.engine.channels()

    assert {name for name in listed if name.startswith(unique)} == {f"{unique}-a", f"{unique}-b"}
    assert len(listed) == len(set(listed))


async def test_channel_is_listed_no_more_when_its_last_subscriber_left(
    engine: Bench, unique: str
) -> None:
    await engine.engine.subscribe(unique)

    await engine.engine.unsubscribe(unique)

    assert unique not in await engine.engine.channels()


async def test_nodes_are_those_that_announced_themselves_where_nodes_are_shared(
    engine: Bench,
) -> None:
    assert await engine.engine.nodes() == ([NODE] if engine.engine.shared else [])


async def test_nothing_is_said_of_a_node_that_withdrew(engine: Bench) -> None:
    await engine.engine.withdraw(NODE)

    assert await engine.engine.nodes() == []


async def test_withdrawing_twice_is_nothing(engine: Bench) -> None:
    await engine.engine.withdraw(NODE)

    await engine.engine.withdraw(NODE)

    assert await engine.engine.nodes() == []
