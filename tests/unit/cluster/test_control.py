"""Control messages: a stream that every node follows and applies to its clients."""

from __future__ import annotations

import asyncio
import json

import pytest

from realtime.channel_rules import CONTROL
from realtime.cluster import control
from realtime.cluster.control import (
    CONTROL_OPTIONS,
    ControlMessage,
    DisconnectSome,
    DisconnectUser,
    EndAuthSession,
    RefreshSome,
    ServerSubscription,
    SubscribeSome,
    Unsubscribe,
    UnsubscribeSome,
)
from realtime.cluster.peers import HEARTBEAT_INTERVAL
from realtime.config.channel_options import Overrides
from realtime.config.reader import load
from realtime.engine.base import Outgoing, Published
from realtime.errors import DisconnectConnectionLimit
from realtime.node.node import Node
from realtime.protocol.messages import Publication, StreamPosition
from realtime.timers import Timers
from tests.unit.parts import Clock, RecordingClient, data, eventually, turns
from tests.unit.suspended_engine import ClusterEngine, SuspendedEngine

FORCED, CONNECTION_LIMIT = 3012, 3013


async def other_node_sends(engine: ClusterEngine, message: ControlMessage) -> None:
    """Let another node send a control message."""
    uid = str(engine.calls["publish"])
    await engine.broker.publish(
        Outgoing(CONTROL, Publication(control.encode(message), uid=uid), CONTROL_OPTIONS)
    )


def add(node: Node, client_id: str = "C", user: str = "17") -> RecordingClient:
    client = RecordingClient(client_id, user)
    node.hub.add(client)
    return client


async def test_unsubscribe_of_another_node_is_applied_here(
    node: Node, engine: ClusterEngine
) -> None:
    mine, other = add(node, "C1"), add(node, "C2", "18")
    await other_node_sends(engine, Unsubscribe("17", "a", origin="another"))
    await eventually(lambda: mine.unsubscribed == ["a"])
    assert other.unsubscribed == []


@pytest.mark.parametrize("code", [FORCED, CONNECTION_LIMIT])
async def test_disconnect_of_another_node_is_applied_here_with_its_code(
    node: Node, engine: ClusterEngine, code: int
) -> None:
    mine, kept, other = add(node, "C1"), add(node, "C2"), add(node, "C3", "18")
    await other_node_sends(engine, DisconnectUser("17", code, keep="C2", origin="another"))
    await eventually(lambda: mine.close_codes == [code])
    assert kept.closes == other.closes == []


async def test_message_is_applied_once_by_the_node_that_sends_it(node: Node) -> None:
    client = add(node)

    await node.unsubscribe_user("17", "a")
    await node.disconnect_user("17", DisconnectConnectionLimit())
    await turns(20)

    assert client.unsubscribed == ["a"]
    assert client.close_codes == [CONNECTION_LIMIT]


async def test_message_is_applied_here_also_if_it_cannot_be_sent(
    node: Node, engine: ClusterEngine
) -> None:
    client = add(node)
    engine.failing.add("publish")
    with pytest.raises(ConnectionError):
        await node.disconnect_user("17")
    assert client.close_codes == [FORCED]


class SignedInClient(RecordingClient):
    """A client of an auth session."""

    def __init__(self, client_id: str, auth_session: str) -> None:
        super().__init__(client_id)
        self._auth_session = auth_session
        self.refreshes = 0

    @property
    def auth_session(self) -> str:
        return self._auth_session

    async def refresh(self) -> None:
        self.refreshes += 1


@pytest.mark.parametrize("origin", ["another", "own"])
@pytest.mark.parametrize(
    ("ended", "closes", "refreshes"),
    [("S1", [[FORCED], [], []], [0, 0, 0]), ("", [[], [], []], [1, 1, 0])],
    ids=["one auth session", "all of them"],
)
async def test_end_of_an_auth_session_closes_its_connections_or_refreshes_all(
    node: Node,
    engine: ClusterEngine,
    origin: str,
    ended: str,
    closes: list[list[int]],
    refreshes: list[int],
) -> None:
    clients = [SignedInClient(f"C{n}", name) for n, name in enumerate(["S1", "S2", ""])]
    for client in clients:
        node.hub.add(client)

    if origin == "own":
        await node.send_control(EndAuthSession("17", ended, FORCED))
    else:
        await other_node_sends(engine, EndAuthSession("17", ended, FORCED, "another"))
    await turns(20)

    assert [client.close_codes for client in clients] == closes
    assert [client.refreshes for client in clients] == refreshes


async def test_missed_messages_are_applied_after_an_interruption(
    node: Node, engine: ClusterEngine
) -> None:
    client = add(node)
    node.on_interrupted(lambda channel: True)
    await engine.broker.unsubscribe(CONTROL)
    await other_node_sends(engine, Unsubscribe("17", "a", origin="another"))
    await other_node_sends(engine, Unsubscribe("17", "b", origin="another"))
    await engine.broker.subscribe(CONTROL)
    await turns(20)
    assert client.unsubscribed == []

    node.on_resumed(lambda channel: True)
    await eventually(lambda: client.unsubscribed == ["a", "b"])


async def test_messages_from_before_the_start_are_not_applied(engine: ClusterEngine) -> None:
    await other_node_sends(engine, Unsubscribe("17", "a", origin="another"))
    node = Node(load({}), engine)
    client = add(node)

    await node.start()
    await other_node_sends(engine, Unsubscribe("17", "b", origin="another"))
    await eventually(lambda: client.unsubscribed == ["b"])

    await node.stop()


@pytest.mark.parametrize("words", ['{"do":"dance"}', "1", "null", '{"do":"disconnect"}'])
async def test_unknown_message_is_logged_and_the_next_one_is_applied(
    node: Node, engine: ClusterEngine, caplog: pytest.LogCaptureFixture, words: str
) -> None:
    client = add(node)

    await engine.broker.publish(
        Outgoing(CONTROL, Publication(data(words), uid="u"), CONTROL_OPTIONS)
    )
    await other_node_sends(engine, Unsubscribe("17", "a", origin="another"))
    await eventually(lambda: client.unsubscribed == ["a"])

    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_loss_of_messages_is_logged_and_the_next_one_is_applied(
    node: Node, engine: ClusterEngine, caplog: pytest.LogCaptureFixture
) -> None:
    client = add(node)
    await other_node_sends(engine, Unsubscribe("17", "a", origin="another"))

    node.on_interrupted(lambda channel: True)
    engine.lose_everything()
    node.on_resumed(lambda channel: True)
    await eventually(lambda: any(record.levelname == "ERROR" for record in caplog.records))
    await other_node_sends(engine, Unsubscribe("17", "b", origin="another"))
    await eventually(lambda: client.unsubscribed == ["a", "b"])


async def test_node_without_a_cluster_sends_nothing(clock: Clock) -> None:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    node = Node(load({}), engine)
    await node.start()
    client = add(node)

    await node.disconnect_user("17")
    await clock.advance(2 * HEARTBEAT_INTERVAL)
    await node.stop()

    assert client.close_codes == [FORCED]
    assert sum(engine.calls[method] for method in ("publish", "announce", "withdraw")) == 0


# some of a user's connections


async def test_some_connections_are_those_that_all_fields_name(
    node: Node, engine: ClusterEngine
) -> None:
    one, two, other = add(node, "C1"), add(node, "C2"), add(node, "C3", "18")
    anonymous = add(node, "C4", "")
    session = "session of C2"

    for message in (
        UnsubscribeSome(user="17", client="C1", channel="a"),
        UnsubscribeSome(user="17", session=session, channel="b"),
        UnsubscribeSome(user="17", client="C1", session=session, channel="neither"),
        UnsubscribeSome(user="17", client="C3", channel="of another user"),
        UnsubscribeSome(user="", client="C4", channel="c"),
        UnsubscribeSome(user="17", channel="d"),
    ):
        await other_node_sends(engine, message)
    await eventually(lambda: len(two.unsubscribed) == 2)

    assert (one.unsubscribed, two.unsubscribed) == (["a", "d"], ["b", "d"])
    assert (other.unsubscribed, anonymous.unsubscribed) == ([], ["c"])


async def test_some_connections_are_closed_with_any_code(node: Node, engine: ClusterEngine) -> None:
    one, two, three = add(node, "C1"), add(node, "C2"), add(node, "C3")

    await other_node_sends(
        engine,
        DisconnectSome(user="17", code=4001, reason="moved", reconnect=True, keep=("C2", "x")),
    )
    await eventually(lambda: three.close_codes == [4001])

    assert (one.close_codes, two.closes) == ([4001], [])
    closed = one.closes[0]
    assert closed is not None
    assert (closed.reason, closed.reconnect) == ("moved", True)


async def test_connections_are_refreshed_at_every_node(node: Node, engine: ClusterEngine) -> None:
    one, two = add(node, "C1"), add(node, "C2")

    await other_node_sends(
        engine, RefreshSome(user="17", client="C1", expires_at=5.5, info='{"a": 1}')
    )
    await node.send_control(RefreshSome(user="17", expires_at=None))
    await eventually(lambda: len(one.refreshed) == 2)

    assert sorted(one.refreshed, key=str) == sorted(
        [(5.5, data('{"a": 1}')), (None, None)], key=str
    )
    assert two.refreshed == [(None, None)]


async def test_connections_are_subscribed_at_every_node(node: Node, engine: ClusterEngine) -> None:
    one, two = add(node, "C1"), add(node, "C2")
    since = StreamPosition(7, "E")

    await other_node_sends(
        engine,
        SubscribeSome(
            user="17",
            client="C1",
            channel="a",
            info='{"a": 1}',
            data="[2]",
            expires_at=5.5,
            since=since,
            overrides={"force_recovery": True, "of the future": True},
        ),
    )
    await node.send_control(SubscribeSome(user="17", channel="b"))
    await eventually(lambda: len(one.subscribed) == 2)

    overrides = Overrides(force_recovery=True)
    whole = ServerSubscription("a", data('{"a": 1}'), data("[2]"), 5.5, since, overrides)
    assert sorted(one.subscribed, key=str) == sorted([whole, ServerSubscription("b")], key=str)
    assert two.subscribed == [ServerSubscription("b")]


@pytest.mark.parametrize(
    "text",
    [
        '{"do":"unsubscribe","user":"17","channel":"a","origin":"n"}',
        '{"do":"disconnect","user":"17","code":3012,"keep":"","origin":"n"}',
    ],
)
async def test_messages_that_older_nodes_know_stay_as_they_were(
    node: Node, engine: ClusterEngine, text: str
) -> None:
    """A message about all connections is one that older nodes apply, too."""
    sent: list[bytes] = []
    publish = engine.broker.publish

    async def recorded(outgoing: Outgoing) -> Published:
        sent.append(outgoing.publication.data.raw)
        return await publish(outgoing)

    engine.broker.publish = recorded  # type: ignore[method-assign]
    if "unsubscribe" in text:
        await node.unsubscribe_user("17", "a")
    else:
        await node.disconnect_user("17")

    (message,) = sent
    assert json.loads(message) | {"origin": "n"} == json.loads(text)
