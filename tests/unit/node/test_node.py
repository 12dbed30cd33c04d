"""The node: presence, joins and leaves, operations on users, what it says of itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import DisconnectConnectionLimit
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo
from tests.unit.node.node_parts import HISTORY, PLAIN, publish, subscribe
from tests.unit.parts import Clock, RecordingClient, turns

# presence, join and leave


PRESENCE = ChannelOptions(presence=True, join_leave=True)


async def test_presence_is_recorded_and_removed_with_the_subscription(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), PRESENCE)
    assert dict(await node.presence.get("a")) == {"C": ClientInfo("17", "C")}
    await node.subscriptions.remove("a", client, PRESENCE, leave=None)
    assert dict(await node.presence.get("a")) == {}


async def test_presence_is_renewed_for_as_long_as_the_subscription_lasts(
    node: Node, clock: Clock
) -> None:
    await subscribe(node, RecordingClient(), PRESENCE)
    for _ in range(10):  # the lifetime is 60 seconds
        await clock.advance(25)
        assert set(await node.presence.get("a")) == {"C"}


async def test_no_presence_is_kept_where_it_is_off(node: Node) -> None:
    await subscribe(node, RecordingClient(), PLAIN)
    assert dict(await node.presence.get("a")) == {}


@pytest.mark.parametrize("options", [PRESENCE, PLAIN], ids=["on", "off"])
async def test_join_is_said_where_it_is_on(node: Node, options: ChannelOptions) -> None:
    client = await subscribe(node, RecordingClient(), options)
    await node.subscriptions.join("a", client.info_in("a"), options)
    expected = [client.codec.join("a", client.info_in("a"))] if options.join_leave else []
    assert client.pushed == expected


async def test_leaver_receives_its_own_leave_and_so_do_others(node: Node) -> None:
    leaver, other = RecordingClient("C1"), RecordingClient("C2")
    for client in (leaver, other):
        await subscribe(node, client, PRESENCE)
    await node.subscriptions.remove("a", leaver, PRESENCE, leave=leaver.info_in("a"))
    leave = leaver.codec.leave("a", leaver.info_in("a"))
    assert leaver.pushed == other.pushed == [leave]


async def test_subscription_that_is_undone_says_no_leave(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), PRESENCE)
    await node.subscriptions.remove("a", client, PRESENCE, leave=None)
    assert client.pushed == []


async def test_last_subscriber_takes_the_channel_and_its_timer_along(
    node: Node, clock: Clock
) -> None:
    client = await subscribe(node, RecordingClient(), PRESENCE)
    await node.subscriptions.remove("a", client, PRESENCE, leave=None)
    await clock.advance(100)
    assert not node.hub.feeds
    assert await node.channels() == []
    assert dict(await node.presence.get("a")) == {}


async def test_history_ids_are_unique_and_only_where_history_is(node: Node) -> None:
    for value in range(5):
        await publish(node, HISTORY, value)
    client = await subscribe(node, RecordingClient(), PLAIN, "b")
    await publish(node, PLAIN, 1, "b")
    uids = [publication.uid for publication in (await node.broker.history("a")).publications]
    assert len(set(uids)) == 5
    assert all(uids)
    assert client.pushed == [b'{"result":{"channel":"b","data":{"data":1}}}\n']


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


# life


async def test_node_counts_subscriptions_that_are_visible(node: Node) -> None:
    first, second, observer = (RecordingClient(name, "17") for name in ("C1", "C2", "C3"))
    await subscribe(node, first, PLAIN, "a")
    await subscribe(node, first, PLAIN, "b")
    await subscribe(node, second, PLAIN, "a")
    await subscribe(node, observer, PLAIN, "a", visible=False)
    counts = [node.status().num_subs]
    for client, channel in ((first, "a"), (second, "a"), (first, "b")):
        await node.subscriptions.remove(channel, client, PLAIN, leave=None)
        counts.append(node.status().num_subs)
    await node.subscriptions.remove("a", observer, PLAIN, leave=None, visible=False)
    assert [*counts, node.status().num_subs] == [3, 2, 1, 0, 0]


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


async def test_failure_of_work_beside_a_client_is_logged(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        raise ValueError("broken")

    node.spawn(work())
    await turns()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "broken" in caplog.text
