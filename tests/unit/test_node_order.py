"""The node: order and gaps of publications, and the comparison of positions."""

from __future__ import annotations

import asyncio

import pytest

from realtime.engine.memory import MemoryEngine
from realtime.node import Node
from realtime.options import ChannelOptions
from realtime.options_reader import load
from realtime.protocol.messages import Publication, StreamPosition
from realtime.timers import Timers
from tests.unit.node_parts import HISTORY, PLAIN, RECOVERABLE, lose, publish, published, subscribe
from tests.unit.parts import Clock, RecordingClient, data

INSUFFICIENT_STATE = 3010


class CountingEngine(MemoryEngine):
    """Counts how often it is asked for a position."""

    asked = 0

    async def position(self, channel: str) -> StreamPosition:
        self.asked += 1
        return await super().position(channel)


async def counting_node(options: dict[str, object]) -> tuple[Node, CountingEngine]:
    engine = CountingEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(options), engine)
    await node.start()
    return node, engine


# order and gaps


@pytest.mark.parametrize("options", [PLAIN, HISTORY, RECOVERABLE], ids=["no", "kept", "recover"])
async def test_publications_arrive_in_order(node: Node, options: ChannelOptions) -> None:
    client = RecordingClient()
    await subscribe(node, client, options)

    for value in range(5):
        await publish(node, options, value)

    assert published(client) == [0, 1, 2, 3, 4]
    assert client.closes == []


async def test_offsets_are_pushed_wherever_history_is_kept(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, HISTORY)

    await publish(node, HISTORY, 1)

    assert client.pushed == [b'{"result":{"channel":"a","data":{"data":1,"offset":1}}}\n']


async def test_publication_after_a_gap_is_not_delivered_and_closes_with_3010(node: Node) -> None:
    clients = [RecordingClient("C1"), RecordingClient("C2")]
    for client in clients:
        await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)

    await lose(node, RECOVERABLE, 2)
    await publish(node, RECOVERABLE, 3)

    assert [published(client) for client in clients] == [[1], [1]]
    assert [client.close_codes for client in clients] == [[INSUFFICIENT_STATE]] * 2


async def test_nothing_reaches_subscribers_that_are_being_closed_for_a_gap(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)

    await lose(node, RECOVERABLE, 2)
    await publish(node, RECOVERABLE, 3)
    await publish(node, RECOVERABLE, 4)

    assert published(client) == [1]


async def test_gap_in_a_channel_without_recovery_closes_nobody(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, HISTORY)
    await publish(node, HISTORY, 1)

    await lose(node, HISTORY, 2)
    await publish(node, HISTORY, 3)

    assert published(client) == [1, 3]
    assert client.closes == []


async def test_gap_in_one_channel_does_not_concern_another(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE, "b")
    other = RecordingClient("C2")
    await subscribe(node, other, RECOVERABLE, "a")

    await lose(node, RECOVERABLE, 1, "a")
    await publish(node, RECOVERABLE, 2, "a")
    await publish(node, RECOVERABLE, 3, "b")

    assert (client.closes, published(client)) == ([], [3])
    assert other.close_codes == [INSUFFICIENT_STATE]


async def test_publication_that_arrives_twice_is_delivered_once(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    kept = (await node.engine.history("a")).publications[0]

    node.on_publication("a", kept, await node.engine.position("a"))

    assert published(client) == [1]
    assert client.closes == []


async def test_publication_of_another_epoch_closes_with_3010(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)

    node.on_publication("a", Publication(data("2"), None, 2), StreamPosition(2, "another"))

    assert published(client) == [1]
    assert client.close_codes == [INSUFFICIENT_STATE]


async def test_held_subscriber_gets_nothing_and_its_publications_are_kept_back(node: Node) -> None:
    held, served = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, served, RECOVERABLE)
    await node.add_subscription("a", held, RECOVERABLE, held.info_in("a"))

    await publish(node, RECOVERABLE, 1)

    assert (published(served), published(held)) == ([1], [])
    assert [publication.offset for publication in node.held("a", held)] == [1]


async def test_subscriber_that_joins_later_continues_where_the_others_are(node: Node) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, first, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await subscribe(node, second, RECOVERABLE)

    await publish(node, RECOVERABLE, 2)

    assert (published(first), published(second)) == ([1, 2], [2])
    assert first.closes == second.closes == []


async def test_publication_for_a_channel_without_local_subscribers_is_dropped(node: Node) -> None:
    node.on_publication("nobody", Publication(data("1")), None)

    assert not node.hub.feeds


# positions are compared from time to time: presence tick 25 s, check delay 40 s


async def test_lost_publication_at_the_end_is_noticed_by_two_checks_in_a_row(
    node: Node, clock: Clock
) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await lose(node, RECOVERABLE, 2)

    await clock.advance(25)
    assert client.closes == []  # 40 seconds have not passed
    await clock.advance(25)
    assert client.closes == []  # one failure may be a publication on its way

    for _ in range(3):
        await clock.advance(25)
    assert client.close_codes == [INSUFFICIENT_STATE]


async def test_right_position_closes_nobody(node: Node, clock: Clock) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)

    for _ in range(20):
        await clock.advance(25)

    assert client.closes == []


async def test_failures_that_are_not_in_a_row_close_nobody(node: Node, clock: Clock) -> None:
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    for value in (1, 2, 3):
        late = await lose(node, RECOVERABLE, value)
        await clock.advance(25)
        await clock.advance(25)
        # it was on its way, after all
        node.on_publication("a", late, await node.engine.position("a"))

    assert client.closes == []
    assert published(client) == [1, 2, 3]


async def test_live_publications_put_the_check_off(clock: Clock) -> None:
    node, engine = await counting_node({})
    await subscribe(node, RecordingClient(), RECOVERABLE)
    asked = engine.asked

    for value in range(6):
        await clock.advance(25)
        await publish(node, RECOVERABLE, value)
    assert engine.asked == asked

    for _ in range(3):
        await clock.advance(25)
    assert engine.asked > asked
    await node.stop()


async def test_check_delay_of_0_checks_never(clock: Clock) -> None:
    node, engine = await counting_node({"client_channel_position_check_delay": 0})
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await lose(node, RECOVERABLE, 1)
    asked = engine.asked

    for _ in range(20):
        await clock.advance(25)

    assert engine.asked == asked
    assert client.closes == []
    await node.stop()
