"""The contract of `engine.base.Broker`, for every engine: versions of publications."""

from __future__ import annotations

from realtime.engine.base import Outgoing, Published
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.protocol.messages import UINT64_MAX, Publication, StreamPosition
from tests.engine.bench import KEPT, Bench
from tests.unit.parts import data, position_of


async def publish(
    engine: Bench, channel: str, value: int, version: Version | None, once: Once | None = None
) -> StreamPosition | None:
    publication = Publication(data(str(value)), uid=f"u{value}")
    return (
        await engine.broker.publish(Outgoing(channel, publication, KEPT, once, version))
    ).position


CASES: dict[str, tuple[list[tuple[int, str] | None], list[int]]] = {
    "growing": ([(1, ""), (2, ""), (3, "")], [0, 1, 2]),
    "equal and older": ([(2, ""), (2, ""), (1, "")], [0]),
    "as numbers": ([(9, ""), (10, ""), (9, "")], [0, 1]),
    "another run": ([(5, "a"), (1, "b"), (1, "b"), (2, "b")], [0, 1, 3]),
    "no run is any run": ([(5, "a"), (1, ""), (6, "")], [0, 2]),
    "a run after none": ([(5, ""), (1, "a"), (2, "a")], [0, 1, 2]),
    "a run after none, older": ([(6, "a"), (7, ""), (1, "a")], [0, 1, 2]),
    "without a version": ([(5, ""), None, (4, "")], [0, 1]),
    "first without a version": ([None, (1, ""), None], [0, 1, 2]),
    "large": ([(UINT64_MAX - 1, ""), (UINT64_MAX, ""), (UINT64_MAX - 1, ""), (2**53, "")], [0, 1]),
    "beyond the numbers of Lua": ([(2**53, ""), (2**53 + 1, "")], [0, 1]),
}


async def test_only_newer_versions_are_published(engine: Bench, unique: str) -> None:
    for case, (versions, published) in CASES.items():
        channel = f"{unique}{case}"
        await engine.broker.subscribe(channel)
        top = 0
        for value, each in enumerate(versions):
            version = None if each is None else Version(*each)
            position = await publish(engine, channel, value, version)
            top += value in published
            assert position is not None, case
            assert position.offset == top, case
            assert position == await position_of(engine.broker, channel), case

        assert await engine.kept_values(channel) == published, case
        await engine.publish(channel, 99)
        received = await engine.received(channel, len(published) + 1)
        assert [p.offset for p in received] == [*range(1, len(published) + 2)], case


async def test_a_version_outlives_what_it_published(engine: Bench, unique: str) -> None:
    first = await publish(engine, unique, 1, Version(7))
    await engine.broker.remove_history(unique)

    assert await publish(engine, unique, 2, Version(7)) == first
    assert await engine.kept(unique) == []
    await publish(engine, f"{unique}b", 1, Version(7))
    assert await engine.kept_values(f"{unique}b") == [1]


async def test_a_key_is_asked_before_the_version_and_used_by_publications_alone(
    engine: Bench, unique: str
) -> None:
    first = await publish(engine, unique, 1, Version(7), Once("a"))
    second = await publish(engine, unique, 2, Version(8))

    assert await publish(engine, unique, 3, Version(9), Once("a")) == first
    assert await publish(engine, unique, 4, Version(8), Once("b")) == second
    third = await publish(engine, unique, 5, Version(9), Once("b"))

    assert third is not None
    assert third.offset == 3
    assert await engine.kept_values(unique) == [1, 2, 5]


async def test_versions_of_several_at_once(engine: Bench, unique: str) -> None:
    outcomes = await engine.broker.publish_many(
        [
            Outgoing(unique, Publication(data(str(n)), uid=str(n)), KEPT, None, Version(n))
            for n in (2, 1, 3)
        ]
    )

    epoch = (await position_of(engine.broker, unique)).epoch
    first, second = StreamPosition(1, epoch), StreamPosition(2, epoch)
    assert outcomes == [Published(first), Published(first, kept=False), Published(second)]
    assert await engine.kept_values(unique) == [2, 3]
