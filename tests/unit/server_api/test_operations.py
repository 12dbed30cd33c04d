"""The server API as coroutines: what it reads of a history."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realtime.cluster.member import NewPublication
from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import BadRequest, NamespaceNotFound, NotAvailable, UnrecoverablePosition
from realtime.node.node import Node
from realtime.protocol.messages import StreamPosition
from realtime.server_api import operations
from tests.unit.parts import data, position_of

CHANNEL = "news"
KEPT = 5


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    """A node that keeps the publications 4 to 8 of eight."""
    node = Node(load({"history_size": KEPT, "history_lifetime": 60}))
    await node.start()
    for number in range(1, 9):
        await operations.publish(node, NewPublication(CHANNEL, data(str(number))))
    yield node
    await node.stop()


@pytest.mark.parametrize("knows_epoch", [True, False])
@pytest.mark.parametrize(
    ("limit", "since", "reverse", "expected"),
    [
        (None, None, False, [4, 5, 6, 7, 8]),
        (-1, None, False, [4, 5, 6, 7, 8]),
        (0, None, False, []),
        (0, 5, False, []),
        (2, None, False, [4, 5]),
        (100, None, False, [4, 5, 6, 7, 8]),
        (None, 0, False, [4, 5, 6, 7, 8]),
        (None, 6, False, [7, 8]),
        (1, 6, False, [7]),
        (None, 8, False, []),
        (None, 2**64 - 1, False, []),
        (None, None, True, [8, 7, 6, 5, 4]),
        (0, None, True, []),
        (2, None, True, [8, 7]),
        (None, 6, True, [5, 4]),
        (1, 6, True, [5]),
        (None, 4, True, []),
        (None, 1, True, []),
        (None, 2**64 - 1, True, [8, 7, 6, 5, 4]),
    ],
)
async def test_history_around_a_position_and_up_to_a_number(
    node: Node,
    limit: int | None,
    since: int | None,
    reverse: bool,
    expected: list[int],
    knows_epoch: bool,
) -> None:
    top = await position_of(node.broker, CHANNEL)
    start = None if since is None else StreamPosition(since, top.epoch if knows_epoch else "")
    result = await operations.history(node, CHANNEL, limit=limit, since=start, reverse=reverse)
    assert [publication.offset for publication in result.publications] == expected
    assert result.position == top


@pytest.mark.parametrize("limit", [None, 0, 5])
async def test_history_since_a_position_of_another_epoch_is_refused(
    node: Node, limit: int | None
) -> None:
    with pytest.raises(UnrecoverablePosition):
        await operations.history(node, CHANNEL, limit=limit, since=StreamPosition(6, "another"))


async def test_history_before_the_first_publication_is_refused(node: Node) -> None:
    with pytest.raises(BadRequest):
        await operations.history(node, CHANNEL, since=StreamPosition(0, ""), reverse=True)


async def test_positions_are_those_of_channels_with_history(node: Node) -> None:
    top = await position_of(node.broker, CHANNEL)

    positions = await operations.positions(node, [CHANNEL, "other"])

    assert positions == [top, StreamPosition(0, top.epoch)]
    with pytest.raises(NamespaceNotFound):
        await operations.positions(node, [CHANNEL, "nope:1"])
    assert await operations.positions(node, []) == []


async def test_options_that_are_given_are_those_that_count(node: Node) -> None:
    with pytest.raises(NotAvailable):
        await operations.history(node, CHANNEL, options=ChannelOptions())
    with pytest.raises(NotAvailable):
        await operations.presence(node, CHANNEL)

    present = await operations.presence(node, CHANNEL, options=ChannelOptions(presence=True))

    assert present.presence == {}


async def test_name_of_no_channel_is_refused(node: Node) -> None:
    with pytest.raises(NamespaceNotFound):
        await operations.history(node, "nope:1", limit=1)
