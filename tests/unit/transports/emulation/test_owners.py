"""Two nodes and one SockJS session: at the same time, owners that forget or die, odd messages."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from realtime.channel_rules import inbox
from realtime.cluster.direct import DirectMessage
from realtime.protocol.messages import Publication
from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import (
    ANSWER_TIMEOUT,
    Attach,
    CheckReceiver,
    Deliver,
    Detach,
    RelayMessage,
    Release,
    WatchReceiver,
    WrittenFrames,
    decode,
)
from realtime.transports.emulation.session import SESSION_TIMEOUT
from realtime.transports.sockjs.framing import SOCKJS
from tests.unit.cluster.direct_parts import levels
from tests.unit.parts import Clock, data, eventually, turns
from tests.unit.transports.emulation.nodes import Nodes, attached, claimed, owners
from tests.unit.transports.emulation.parts import BUSY, CONNECT, INTERRUPTED, OPEN


async def test_claims_are_renewed_after_an_outage_and_until_then_sessions_are_not_denied(
    nodes: Nodes,
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    nodes.cluster.claims.clear()
    for node in nodes.nodes:
        node.on_interrupted(lambda channel: True)
    other.on_resumed(lambda channel: True)
    assert await visitor.say(other, CONNECT) == 503

    one.on_resumed(lambda channel: True)
    await claimed(nodes, one)

    assert await visitor.say(other, CONNECT) == 204


# at the same time


@pytest.mark.parametrize("second", [0, 1], ids=["one node", "two nodes"])
async def test_two_first_requests_make_one_session(nodes: Nodes, second: int) -> None:
    visitor = nodes.visitor()
    requests = [visitor.receive(nodes.nodes[at]) for at in (0, second)]
    await eventually(lambda: any(request.serving.done() for request in requests))
    assert sorted(request.frames for request in requests) == [[BUSY], [OPEN]]
    assert len(owners(nodes)) == 1
    for request in requests:
        await request.quit()


async def test_node_whose_claim_is_under_way_does_not_deny_the_session(
    nodes: Nodes,
) -> None:
    """Other nodes see a claim before the node that made it gets the reply."""
    one, other = nodes.nodes
    nodes.engines[0].hold_answer("claim")
    visitor = nodes.visitor()
    first = visitor.receive(one)
    await eventually(lambda: "claim" in nodes.engines[0].waiting)

    second = visitor.receive(other)
    await attached(nodes)
    nodes.engines[0].go_on("claim")

    await first.has(OPEN)
    assert await second.end() == [BUSY]
    assert owners(nodes) == [one.uid]
    await first.quit()


async def test_session_that_begins_while_one_of_its_name_is_released_is_owned(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    engine = nodes.engines[0]
    visitor = await nodes.begun()
    engine.hold("claim")
    await clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: engine.waiting == ["claim"])

    request = visitor.receive(one)
    await turns(20)
    engine.go_on("claim")
    await request.has(OPEN)
    await turns(20)

    await claimed(nodes, one)
    await request.quit()


# owners that do not have the session


async def test_session_that_its_owner_has_forgotten_begins_at_the_node_with_the_request(
    nodes: Nodes,
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    [name] = nodes.cluster.claims
    await nodes.clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: name not in nodes.cluster.claims)
    assert one.cluster is not None
    await one.cluster.claim(name, one.uid, 60)  # as if it had outlived the session

    assert await visitor.poll(other) == OPEN

    assert nodes.cluster.claims[name][0] == other.uid


async def test_session_of_a_dead_owner_is_interrupted_and_its_name_is_free(
    nodes: Nodes, clock: Clock
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    await nodes.die(one)
    # its claims stay until they expire
    assert owners(nodes) == [one.uid]

    request = visitor.receive(other)
    await eventually(lambda: nodes.engines[1].broker.count(relay_messages.Attach) == 1)
    await clock.advance(ANSWER_TIMEOUT)

    assert await request.end() == [INTERRUPTED]
    assert owners(nodes) == []
    assert await visitor.poll(other) == OPEN


async def test_client_gets_one_frame_that_says_interrupted(nodes: Nodes, clock: Clock) -> None:
    """A polling response that has its frame already takes no second one."""
    one, other = nodes.nodes
    nodes.engines[0].broker.lose_assent()
    visitor = await nodes.begun()
    assert await visitor.say(one, CONNECT) == 204

    request = visitor.receive(other, "xhr")
    await eventually(lambda: nodes.engines[0].broker.count(relay_messages.WrittenFrames) == 1)
    await clock.advance(ANSWER_TIMEOUT)

    [frame] = await request.end()
    assert '\\"id\\":1' in frame


async def test_slow_owner_ends_the_session_that_the_relay_node_gave_up(
    nodes: Nodes, clock: Clock
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    engine = nodes.engines[1]
    engine.broker.lose(relay_messages.Attach)
    request = visitor.receive(other)
    await eventually(lambda: engine.broker.count(relay_messages.Attach) == 1)
    await clock.advance(ANSWER_TIMEOUT)
    assert await request.end() == [INTERRUPTED]

    await engine.broker.let_arrive()

    await eventually(lambda: not one._connections)


# messages of other versions


@pytest.mark.parametrize(
    "body",
    [b'["of-another-version"]', b'["attach"]', b'["watch","s","x"]', b"{}", b"null", b'"x"'],
    ids=str,
)
async def test_unknown_message_is_ignored(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    message = DirectMessage(SOCKJS.transport, other.uid, 1, False, msgspec.Raw(body))
    written = len(nodes.engines[0].broker.written)

    publication = Publication(data(msgspec.json.encode(message)))
    nodes.engines[0].broker.receive(inbox(one.uid), publication)
    await turns(20)

    assert len(nodes.engines[0].broker.written) == written
    assert levels(caplog) == set()
    assert await visitor.say(other, CONNECT) == 204


@pytest.mark.parametrize(
    "message",
    [
        relay_messages.WrittenFrames(7, 0, ["h"], False),
        relay_messages.Detach("nobody", 7),
        relay_messages.Release("nobody", 7),
        relay_messages.WatchReceiver("nobody", 7),
        relay_messages.CheckReceiver(7),
        relay_messages.Attach("nobody", 7, 0),
        relay_messages.Deliver("nobody", ["{}"]),
    ],
    ids=lambda message: type(message).__name__,
)
async def test_message_about_an_unknown_session_or_receiver_is_denied(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, message: relay_messages.RelayMessage
) -> None:
    one, other = nodes.nodes
    for node in (one, other):
        await nodes.visitor().poll(node)

    asking = asyncio.ensure_future(
        other.direct.ask(one.uid, SOCKJS.transport, msgspec.json.encode(message), 1.0)
    )
    await turns(20)
    answers = [body for body in nodes.engines[0].broker.written if isinstance(body, bytes)]
    asking.cancel()

    is_question = isinstance(
        message,
        relay_messages.WatchReceiver
        | relay_messages.CheckReceiver
        | relay_messages.Attach
        | relay_messages.Deliver,
    )
    assert answers == ([relay_messages.NO] if is_question else [])
    assert levels(caplog) == set()


async def test_session_that_begins_at_a_stopping_node_is_closed_with_shutdown(
    nodes: Nodes,
) -> None:
    one, _ = nodes.nodes
    await nodes.visitor().poll(one)
    one.begin_stop()
    frames = await nodes.visitor().receive(one).end()
    assert frames[0] == OPEN
    assert frames[1].startswith("c[3001,")


# relay messages on the wire, which nodes of two versions exchange


MESSAGES: dict[bytes, RelayMessage] = {
    b'["attach","s",7,131072,"a",["p"]]': Attach("s", 7, 131072, "a", ("p",)),
    b'["watch","s",7]': WatchReceiver("s", 7),
    b'["detach","s",7]': Detach("s", 7),
    b'["release","s",7]': Release("s", 7),
    b'["deliver","s",["{}","{}"],"a",["p"]]': Deliver("s", ["{}", "{}"], "a", ("p",)),
    b'["written",7,0,["o"],false]': WrittenFrames(7, 0, ["o"], False),
    b'["check",7]': CheckReceiver(7),
}


OLDER: dict[bytes, relay_messages.RelayMessage] = {
    b'["attach","s",7,131072]': Attach("s", 7, 131072),
    b'["deliver","s",["{}","{}"]]': Deliver("s", ["{}", "{}"]),
    b'["attach","s",7,131072,"a"]': Attach("s", 7, 131072, "a"),
    b'["deliver","s",["{}","{}"],"a"]': Deliver("s", ["{}", "{}"], "a"),
}


@pytest.mark.parametrize(("body", "message"), (MESSAGES | OLDER).items())
def test_relay_message_has_the_form_that_nodes_of_all_versions_read(
    body: bytes, message: relay_messages.RelayMessage
) -> None:
    assert decode(body) == message
    assert body in OLDER or msgspec.json.encode(message) == body


async def test_nodes_of_all_versions_find_a_session_by_the_same_claim(nodes: Nodes) -> None:
    one, _ = nodes.nodes
    visitor = nodes.visitor()
    visitor.name = "session1"
    await visitor.poll(one)
    await claimed(nodes, one)
    # its name is a secret: any client that knows it can send in the session
    assert [*nodes.cluster.claims] == ["sockjs.765383c90f3c68a7996f3088a0b61ef2"]
    assert SOCKJS.transport == "sockjs"
