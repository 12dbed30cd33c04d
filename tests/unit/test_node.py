"""The node: order and gaps, position checks, what clients are told by server operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from realtime.errors import DisconnectConnectionLimit
from realtime.node import Node
from realtime.options import ChannelOptions
from realtime.options_reader import load
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.unit.parts import Clock, RecordingClient, data, turns

PLAIN = ChannelOptions()
HISTORY = ChannelOptions(history_size=100, history_lifetime=1000)
RECOVERABLE = ChannelOptions(history_size=100, history_lifetime=1000, history_recover=True)
INSUFFICIENT_STATE = 3010


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    made = Node(load({"v3_use_offset": True}))
    await made.start()
    yield made
    await made.stop()


async def subscribe(
    node: Node, client: RecordingClient, options: ChannelOptions, channel: str = "a"
) -> None:
    """Subscribe as a client does, that has everything up to the position of now."""
    await node.add_subscription(channel, client, options, client.info_in(channel))
    position = await node.engine.position(channel) if options.history_recover else None
    node.release(channel, client, position)


async def publish(node: Node, options: ChannelOptions, value: int, channel: str = "a") -> None:
    await node.publish(channel, data(str(value)), options)


async def lose(node: Node, options: ChannelOptions, value: int, channel: str = "a") -> Publication:
    """Publish something that does not arrive at this node."""
    await node.engine.unsubscribe(channel)
    await publish(node, options, value, channel)
    await node.engine.subscribe(channel)
    return (await node.engine.history(channel)).publications[-1]


def published(client: RecordingClient) -> list[object]:
    """The data of the publications pushed to a client."""
    results = [json.loads(message)["result"] for message in client.pushed]
    return [result["data"]["data"] for result in results if "type" not in result]


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


async def test_live_publications_put_the_check_off(node: Node, clock: Clock) -> None:
    engine_asked: list[str] = []
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    feed = node.hub.feeds["a"]
    feed.mismatches = 1  # as after one failure

    for value in range(6):
        await clock.advance(25)
        await publish(node, RECOVERABLE, value)

    assert feed.mismatches == 0
    assert client.closes == engine_asked == []


async def test_check_delay_of_0_checks_never(clock: Clock) -> None:
    node = Node(load({"client_channel_position_check_delay": 0}))
    await node.start()
    client = RecordingClient()
    await subscribe(node, client, RECOVERABLE)
    await lose(node, RECOVERABLE, 1)

    for _ in range(20):
        await clock.advance(25)

    assert client.closes == []
    await node.stop()


# presence, join and leave


PRESENCE = ChannelOptions(presence=True, join_leave=True)


async def test_presence_is_recorded_and_removed_with_the_subscription(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, PRESENCE)
    assert dict(await node.engine.presence("a")) == {"C": ClientInfo("17", "C")}

    await node.remove_subscription("a", client, PRESENCE, leave=None)

    assert dict(await node.engine.presence("a")) == {}


async def test_presence_is_renewed_for_as_long_as_the_subscription_lasts(
    node: Node, clock: Clock
) -> None:
    client = RecordingClient()
    await subscribe(node, client, PRESENCE)

    for _ in range(10):  # the lifetime is 60 seconds
        await clock.advance(25)
        assert set(await node.engine.presence("a")) == {"C"}


async def test_no_presence_is_kept_where_it_is_off(node: Node) -> None:
    await subscribe(node, RecordingClient(), PLAIN)

    assert dict(await node.engine.presence("a")) == {}


@pytest.mark.parametrize("options", [PRESENCE, PLAIN], ids=["on", "off"])
async def test_join_is_said_where_it_is_on(node: Node, options: ChannelOptions) -> None:
    client = RecordingClient()
    await subscribe(node, client, options)

    await node.join("a", client.info_in("a"), options)

    expected = [client.codec.join("a", client.info_in("a"))] if options.join_leave else []
    assert client.pushed == expected


async def test_leaver_receives_its_own_leave_and_so_do_others(node: Node) -> None:
    leaver, other = RecordingClient("C1"), RecordingClient("C2")
    for client in (leaver, other):
        await subscribe(node, client, PRESENCE)

    await node.remove_subscription("a", leaver, PRESENCE, leave=leaver.info_in("a"))

    leave = leaver.codec.leave("a", leaver.info_in("a"))
    assert leaver.pushed == other.pushed == [leave]


async def test_subscription_that_is_undone_says_no_leave(node: Node) -> None:
    client = RecordingClient()
    await subscribe(node, client, PRESENCE)

    await node.remove_subscription("a", client, PRESENCE, leave=None)

    assert client.pushed == []


async def test_last_subscriber_takes_the_channel_and_its_timer_along(
    node: Node, clock: Clock
) -> None:
    client = RecordingClient()
    await subscribe(node, client, PRESENCE)

    await node.remove_subscription("a", client, PRESENCE, leave=None)
    await clock.advance(100)

    assert not node.hub.feeds
    assert await node.engine.channels() == []
    assert dict(await node.engine.presence("a")) == {}


async def test_history_ids_are_unique_and_only_where_history_is(node: Node) -> None:
    for value in range(5):
        await publish(node, HISTORY, value)
    client = RecordingClient()
    await subscribe(node, client, PLAIN, "b")
    await publish(node, PLAIN, 1, "b")

    uids = [publication.uid for publication in (await node.engine.history("a")).publications]
    assert len(set(uids)) == 5
    assert all(uids)
    assert client.pushed == [b'{"result":{"channel":"b","data":{"data":1}}}\n']


# operations on users


async def test_unsubscribe_reaches_every_connection_of_the_user(node: Node) -> None:
    mine = [RecordingClient("C1"), RecordingClient("C2")]
    other = RecordingClient("C3", "18")
    for client in (*mine, other):
        node.hub.add(client)

    await node.unsubscribe_user("17", "a")

    assert [client.unsubscribed for client in (*mine, other)] == [["a"], ["a"], []]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda node: node.disconnect_user("17"), 3012),
        (lambda node: node.disconnect_user("17", DisconnectConnectionLimit()), 3013),
    ],
    ids=["by default", "with advice"],
)
async def test_disconnect_closes_every_connection_of_the_user(
    node: Node, call: Callable[[Node], Awaitable[None]], code: int
) -> None:
    mine = [RecordingClient("C1"), RecordingClient("C2")]
    other = RecordingClient("C3", "18")
    for client in (*mine, other):
        node.hub.add(client)

    await call(node)

    assert [client.close_codes for client in (*mine, other)] == [[code], [code], []]


async def test_disconnect_keeps_the_connection_it_is_told_to_keep(node: Node) -> None:
    first, second = RecordingClient("C1"), RecordingClient("C2")
    node.hub.add(first)
    node.hub.add(second)

    await node.disconnect_user("17", keep=second)

    assert (first.close_codes, second.close_codes) == ([3012], [])


# life


async def test_node_says_what_it_is(node: Node, clock: Clock) -> None:
    node.hub.add(RecordingClient("C1", ""))
    node.hub.add(RecordingClient("C2", "17"))
    client = RecordingClient("C3", "17")
    node.hub.add(client)
    await subscribe(node, client, PLAIN, "a")
    await subscribe(node, client, PLAIN, "b")
    await clock.advance(90.5)

    (info,) = await node.nodes()

    assert (info.num_clients, info.num_users, info.num_channels, info.uptime) == (3, 2, 2, 90)
    assert info.uid == node.uid
    assert info.name


async def test_name_of_the_node_is_an_option(clock: Clock) -> None:
    node = Node(load({"name": "first"}))

    assert node.describe().name == "first"
    await node.stop()


async def test_stopping_closes_everyone_with_shutdown_and_newcomers_too(node: Node) -> None:
    connected, opened = RecordingClient("C1"), RecordingClient("C2")
    node.opened(connected)
    node.hub.add(connected)

    node.begin_stop()
    node.opened(opened)

    assert (connected.close_codes, opened.close_codes) == ([3001], [3001])


async def test_closed_connection_is_not_closed_again_by_stopping(node: Node) -> None:
    client = RecordingClient()
    node.opened(client)
    node.closed(client)

    node.begin_stop()

    assert client.closes == []


async def test_stop_waits_for_work_beside_the_clients(node: Node) -> None:
    finished = asyncio.Event()

    async def work() -> None:
        await turns(20)
        finished.set()

    node.spawn(work())
    await node.stop()

    assert finished.is_set()


async def test_failure_of_work_beside_a_client_is_logged(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        raise ValueError("broken")

    node.spawn(work())
    await turns()

    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "broken" in caplog.text
