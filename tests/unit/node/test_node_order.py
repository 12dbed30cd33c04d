"""The node: order and gaps of publications, and the comparison of positions."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.protocol.messages import Publication, StreamPosition
from realtime.timers import Timers
from tests.unit.node.node_parts import (
    HISTORY,
    PLAIN,
    RECOVERABLE,
    lose,
    publish,
    published,
    subscribe,
)
from tests.unit.parts import Clock, RecordingClient, data, eventually, position_of, turns
from tests.unit.suspended_engine import SuspendedEngine

INSUFFICIENT_STATE = 3010


async def suspended_node(options: dict[str, object]) -> tuple[Node, SuspendedEngine]:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(options), engine)
    await node.start()
    return node, engine


async def lose_for_good(node: Node, value: int, channel: str = "a") -> None:
    """Publish something that does not arrive at this node and is not kept."""
    await lose(node, RECOVERABLE, value, channel)
    await node.broker.remove_history(channel)


# order and gaps


@pytest.mark.parametrize("options", [PLAIN, HISTORY, RECOVERABLE], ids=["no", "kept", "recover"])
async def test_publications_arrive_in_order(node: Node, options: ChannelOptions) -> None:
    client = await subscribe(node, RecordingClient(), options)
    for value in range(5):
        await publish(node, options, value)
    assert published(client) == [0, 1, 2, 3, 4]
    assert client.closes == []


async def test_offsets_are_pushed_wherever_history_is_kept(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), HISTORY)
    await publish(node, HISTORY, 1)
    assert client.pushed == [b'{"result":{"channel":"a","data":{"data":1,"offset":1}}}\n']


async def test_gap_is_filled_once_for_all_subscribers(clock: Clock) -> None:
    node, engine = await suspended_node({})
    clients = [RecordingClient(f"C{number}") for number in range(10)]
    for client in clients:
        await subscribe(node, client, RECOVERABLE)
    await lose(node, RECOVERABLE, 1)
    read = engine.calls["history"]
    await publish(node, RECOVERABLE, 2)
    await eventually(lambda: published(clients[-1]) == [1, 2])
    await publish(node, RECOVERABLE, 3)
    assert engine.calls["history"] - read == 1
    assert [published(client) for client in clients] == [[1, 2, 3]] * 10
    assert [client.closes for client in clients] == [[]] * 10
    await node.stop()


async def test_publication_after_a_gap_is_not_delivered_before_the_gap_is_filled(
    clock: Clock,
) -> None:
    node, engine = await suspended_node({})
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await lose(node, RECOVERABLE, 1)
    engine.hold("history")
    await publish(node, RECOVERABLE, 2)
    await turns(20)
    assert published(client) == []
    engine.go_on("history")
    await eventually(lambda: published(client) == [1, 2])
    await node.stop()


async def test_gap_that_history_cannot_fill_closes_with_3010(node: Node) -> None:
    clients = [RecordingClient("C1"), RecordingClient("C2")]
    for client in clients:
        await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await lose_for_good(node, 2)
    await publish(node, RECOVERABLE, 3)
    await eventually(lambda: all(client.closes for client in clients))
    await publish(node, RECOVERABLE, 4)  # nothing reaches them any more
    await turns(20)
    assert [published(client) for client in clients] == [[1], [1]]
    assert [client.close_codes for client in clients] == [[INSUFFICIENT_STATE]] * 2


async def test_subscriber_that_comes_after_a_gap_closed_the_others_is_served(node: Node) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, first, RECOVERABLE)
    await lose_for_good(node, 1)
    await publish(node, RECOVERABLE, 2)
    await eventually(lambda: bool(first.closes))
    await subscribe(node, second, RECOVERABLE)
    await publish(node, RECOVERABLE, 3)
    assert (published(second), second.closes) == ([3], [])
    assert published(first) == []


async def test_gap_in_a_channel_without_recovery_closes_no_client(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), HISTORY)
    await publish(node, HISTORY, 1)
    await lose(node, HISTORY, 2)
    await publish(node, HISTORY, 3)
    await turns(20)
    assert published(client) == [1, 3]
    assert client.closes == []


async def test_gap_in_one_channel_does_not_concern_another(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE, "b")
    other = await subscribe(node, RecordingClient("C2"), RECOVERABLE, "a")
    await lose_for_good(node, 1, "a")
    await publish(node, RECOVERABLE, 2, "a")
    await publish(node, RECOVERABLE, 3, "b")
    await eventually(lambda: bool(other.closes))
    assert (client.closes, published(client)) == ([], [3])
    assert other.close_codes == [INSUFFICIENT_STATE]


async def test_publication_that_arrives_twice_is_delivered_once(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    kept = (await node.broker.history("a")).publications[0]
    node.on_publication("a", kept, await position_of(node.broker, "a"))
    assert published(client) == [1]
    assert client.closes == []


async def test_stray_publication_of_another_epoch_is_not_delivered_and_closes_no_client(
    node: Node,
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    node.on_publication("a", Publication(data("2"), None, 2), StreamPosition(2, "another"))
    await publish(node, RECOVERABLE, 3)
    await eventually(lambda: published(client) == [1, 3])
    assert client.closes == []


async def test_publication_of_a_stream_that_began_anew_closes_with_3010(clock: Clock) -> None:
    node, engine = await suspended_node({})
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    engine.lose_everything()
    await publish(node, RECOVERABLE, 2)
    await eventually(lambda: bool(client.closes))
    assert published(client) == [1]
    assert client.close_codes == [INSUFFICIENT_STATE]
    await node.stop()


async def test_held_subscriber_gets_nothing_and_its_publications_are_kept_back(node: Node) -> None:
    held, served = RecordingClient("C1", positioned="a"), RecordingClient("C2")
    await subscribe(node, served, RECOVERABLE)
    await node.subscriptions.add("a", held, RECOVERABLE, held.info_in("a"))
    await publish(node, RECOVERABLE, 1)
    assert (published(served), published(held)) == ([1], [])
    assert [publication.offset for publication in node.hub.feeds["a"].held(held)] == [1]


async def test_what_fills_a_gap_is_kept_back_for_a_held_subscriber_in_order(node: Node) -> None:
    held, served = RecordingClient("C1", positioned="a"), RecordingClient("C2")
    await subscribe(node, served, RECOVERABLE)
    await node.subscriptions.add("a", held, RECOVERABLE, held.info_in("a"))
    await publish(node, RECOVERABLE, 1)

    await lose(node, RECOVERABLE, 2)
    await publish(node, RECOVERABLE, 3)
    epoch = (await position_of(node.broker, "a")).epoch
    assert node.hub.feeds["a"].position == StreamPosition(1, epoch)
    await eventually(lambda: published(served) == [1, 2, 3])

    assert published(held) == []
    assert [publication.offset for publication in node.hub.feeds["a"].held(held)] == [1, 2, 3]
    assert node.hub.feeds["a"].position == await position_of(node.broker, "a")


async def test_held_subscriber_is_closed_too_when_a_gap_cannot_be_filled(node: Node) -> None:
    held = RecordingClient("C", positioned="a")
    await node.subscriptions.add("a", held, RECOVERABLE, held.info_in("a"))
    await lose_for_good(node, 1)
    await publish(node, RECOVERABLE, 2)
    await eventually(lambda: bool(held.closes))
    assert held.close_codes == [INSUFFICIENT_STATE]


async def test_subscriber_that_joins_later_continues_where_the_others_are(node: Node) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, first, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await subscribe(node, second, RECOVERABLE)
    await publish(node, RECOVERABLE, 2)
    assert (published(first), published(second)) == ([1, 2], [2])
    assert first.closes == second.closes == []


@pytest.mark.parametrize("options", [PLAIN, HISTORY], ids=["no history", "history"])
async def test_channel_without_recovery_has_no_position(
    node: Node, options: ChannelOptions
) -> None:
    await subscribe(node, RecordingClient(), options)
    assert node.hub.feeds["a"].position is None


async def test_publication_for_a_channel_without_local_subscribers_is_dropped(node: Node) -> None:
    node.on_publication("nobody", Publication(data("1")), None)
    assert not node.hub.feeds


async def test_last_subscriber_that_leaves_a_gap_behind_leaves_no_task(clock: Clock) -> None:
    node, engine = await suspended_node({})
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await lose(node, RECOVERABLE, 1)
    engine.hold("history")
    await publish(node, RECOVERABLE, 2)
    await engine.reached("history")
    await node.subscriptions.remove("a", client, RECOVERABLE, leave=None)
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert published(client) == []
    await node.stop()
