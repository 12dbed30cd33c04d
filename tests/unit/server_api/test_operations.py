"""The server API as coroutines: what it reads of a history."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import NamespaceNotFound, NotAvailable
from realtime.node.node import Node
from realtime.server_api import operations
from tests.unit.parts import data

CHANNEL = "news"
KEPT = 5


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    """A node that keeps the publications 4 to 8 of eight."""
    node = Node(load({"history_size": KEPT, "history_lifetime": 60}))
    await node.start()
    for number in range(1, 9):
        await operations.publish(node, CHANNEL, data(str(number)))
    yield node
    await node.stop()


@pytest.mark.parametrize(
    ("limit", "since", "expected"),
    [
        (None, None, [4, 5, 6, 7, 8]),
        (None, 1, [4, 5, 6, 7, 8]),
        (None, 6, [6, 7, 8]),
        (None, 9, []),
        (2, None, [7, 8]),
        (5, None, [4, 5, 6, 7, 8]),
        (100, None, [4, 5, 6, 7, 8]),
        (0, None, []),
        (2, 5, [5, 6]),
        (2, 1, [4, 5]),
        (2, 8, [8]),
        (0, 5, []),
    ],
)
async def test_history_from_an_offset_and_up_to_a_number(
    node: Node, limit: int | None, since: int | None, expected: list[int]
) -> None:
    result = await operations.history(node, CHANNEL, limit=limit, since=since)

    assert [publication.offset for publication in result.publications] == expected


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
