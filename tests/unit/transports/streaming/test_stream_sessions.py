"""Frames for HTTP streams of this node and of others."""

from __future__ import annotations

import asyncio

import pytest

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.engine.nodes import NodeInfo
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.transports.emulation.incoming import IncomingFrames
from realtime.transports.emulation.relay_messages import ANSWER_TIMEOUT, DELIVER_TIMEOUT
from realtime.transports.streaming.sessions import StreamSessions, new_session
from tests.unit.node.outbox_parts import RecordingTransport
from tests.unit.parts import Clock, turns
from tests.unit.transports.emulation.nodes import Nodes
from tests.unit.transports.emulation.parts import open_node

CONNECT = b'{"id":1,"connect":{}}'


async def open_session(node: Node, sessions: StreamSessions) -> tuple[str, Client]:
    """A session at a node."""
    await sessions.open()
    session = new_session()
    client = Client(node, RecordingTransport(), node.codecs.json_2)
    sessions.add(session, IncomingFrames(Dispatcher(client, recognises=False), node.spawn))
    return session, client


def has_connected(client: Client) -> bool:
    return bool(client.session.state.name == "CONNECTED")


async def test_frame_reaches_the_session_that_it_names(clock: Clock) -> None:
    async with open_node(clock, client_insecure=True) as node:
        sessions = StreamSessions(node)
        session, client = await open_session(node, sessions)
        _, other = await open_session(node, sessions)

        assert await sessions.deliver(node.uid, session, CONNECT)
        await turns()

        assert (has_connected(client), has_connected(other)) == (True, False)
        assert not await sessions.deliver(node.uid, client.id, CONNECT)
        assert not await sessions.deliver("elsewhere", session, CONNECT)
        sessions.remove(session)
        assert not await sessions.deliver(node.uid, session, CONNECT)


async def test_frame_goes_to_the_node_that_it_names(nodes: Nodes) -> None:
    one, other = nodes.nodes
    there, here = StreamSessions(one), StreamSessions(other)
    session, client = await open_session(one, there)
    assert await here.deliver(one.uid, session, CONNECT)
    await turns()
    assert has_connected(client)
    assert not await here.deliver(one.uid, "unknown", CONNECT)
    # Protobuf is not UTF-8
    assert await here.deliver(one.uid, session, b"\xff\x00")
    await turns()
    assert client.is_closing()


async def test_many_requests_for_unknown_nodes_cost_few_questions(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = nodes.nodes[0]
    sessions = StreamSessions(node)
    looks = 0
    look = node.nodes

    async def counting() -> list[NodeInfo]:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return await look()

    monkeypatch.setattr(node, "nodes", counting)

    taken = await asyncio.gather(
        *(sessions.deliver(f"unknown{number}", "session", CONNECT) for number in range(100))
    )

    assert not any(taken)
    assert looks == 2  # one that had begun, and one for all who came meanwhile


async def test_node_that_died_is_asked_until_it_is_known_to_be_dead(
    nodes: Nodes, clock: Clock
) -> None:
    one, other = nodes.nodes
    here = StreamSessions(other)
    await here.open()
    await nodes.die(one)

    async def deliver() -> bool:
        asking = asyncio.create_task(here.deliver(one.uid, "session", CONNECT))
        for _ in range(50):
            await turns(20)
            await clock.advance(ANSWER_TIMEOUT / 20)
        return await asking

    with pytest.raises(EngineUnavailable):
        await deliver()

    assert one._peers is not None
    one._peers.begin_stop()  # its heart has stopped, too
    del nodes.cluster.heartbeats[one.uid]
    assert not await deliver()


async def test_node_that_is_not_listed_again_after_an_outage_is_not_taken_for_dead(
    nodes: Nodes,
) -> None:
    one, other = nodes.nodes
    there, here = StreamSessions(one), StreamSessions(other)
    session, _ = await open_session(one, there)
    heartbeat = nodes.cluster.heartbeats.pop(one.uid)
    other.on_interrupted(lambda channel: True)
    other.on_resumed(lambda channel: True)

    with pytest.raises(EngineUnavailable):
        await here.deliver(one.uid, session, CONNECT)

    nodes.cluster.heartbeats[one.uid] = heartbeat
    assert await here.deliver(one.uid, session, CONNECT)


async def test_look_that_took_too_long_counts_as_none(nodes: Nodes, clock: Clock) -> None:
    """Who waited behind it looks as well, and does not take live nodes for dead."""
    one, other = nodes.nodes
    there, here = StreamSessions(one), StreamSessions(other)
    session, _ = await open_session(one, there)
    nodes.engines[1].hold("statuses")
    asking = []
    for _ in range(3):
        asking.append(asyncio.create_task(here.deliver(one.uid, session, CONNECT)))
        await turns(20)
        await clock.advance(1)
    *late, last = asking

    await clock.advance(DELIVER_TIMEOUT - 3)  # the first gives up, and the second looks
    await turns(20)
    assert (late[0].done(), DELIVER_TIMEOUT < 5) == (True, True)  # SDKs wait for 5 seconds
    await clock.advance(1)
    await turns(20)
    assert all(each.done() for each in late)
    nodes.engines[1].go_on("statuses")

    assert await last
    for each in late:
        with pytest.raises(EngineUnavailable):
            await each
