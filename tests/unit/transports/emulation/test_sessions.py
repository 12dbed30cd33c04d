"""Where sessions are: claimed, renewed, found, released; and failures of the engine."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from realtime.config.reader import load
from realtime.node.node import Node
from realtime.timers import Timers
from realtime.transports.emulation.owning_node import CLAIM_LIFETIME, CLAIM_RENEWAL
from realtime.transports.emulation.session import SESSION_TIMEOUT
from realtime.transports.sockjs.application import SockJS
from tests.unit.cluster.direct_parts import levels
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import SuspendedEngine
from tests.unit.transports.emulation.nodes import Nodes, claimed, owners
from tests.unit.transports.emulation.parts import (
    CONNECT,
    LARGE,
    OPEN,
    OPTIONS,
    Request,
    Visitor,
    open_node,
    subscribe_command,
)

TOO_MANY_REQUESTS = r'c[3008,"{\"reason\":\"too many requests\",\"reconnect\":true}"]'

# one node


async def test_session_that_was_forgotten_begins_anew(node: Node, clock: Clock) -> None:
    visitor = Visitor(SockJS(None), "s")
    assert await visitor.poll(node) == OPEN
    await clock.advance(SESSION_TIMEOUT)
    await clock.advance(SESSION_TIMEOUT)
    assert await visitor.say(node, CONNECT) == 404
    assert await visitor.poll(node) == OPEN


async def test_sessions_of_two_names_are_two(node: Node) -> None:
    application = SockJS(None)
    one, other = Visitor(application, "s"), Visitor(application, "S")
    assert [await one.poll(node), await other.poll(node)] == [OPEN, OPEN]
    assert len(node._connections) == 2


async def test_two_nodes_without_a_cluster_have_sessions_of_their_own(
    node: Node, clock: Clock
) -> None:
    visitor = Visitor(SockJS(None), "s")
    async with open_node(clock) as stranger:
        assert [await visitor.poll(node), await visitor.poll(stranger)] == [OPEN, OPEN]


@pytest.mark.parametrize(
    ("transport", "body", "status"),
    [
        ("jsonp_send", b"d=%5B%22" + b"%61" * 800_000 + b"%22%5D", 200),
        ("xhr_send", b'["' + rb"\\" * 1_000_000, 400),
    ],
    ids=["a form of escapes", "broken JSON of escapes"],
)
async def test_event_loop_runs_while_a_slow_body_is_decoded(
    node: Node, transport: str, body: bytes, status: int
) -> None:
    application = SockJS(None)
    await Visitor(application, "s").poll(node)

    request = Request(application, node, "s", transport, body)
    turns = 0
    while not request.serving.done():
        turns += 1
        await asyncio.sleep(0)

    assert request.status == status
    assert turns > 100


async def test_request_whose_client_goes_while_it_waits_is_cancelled(clock: Clock) -> None:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    async with open_node(clock, engine) as node:
        visitor = Visitor(SockJS(None), "s")
        await visitor.poll(node)
        engine.hold("subscribe")
        assert await visitor.say(node, CONNECT, subscribe_command("a")) == 204
        request = visitor.send(node, LARGE % 3)
        await turns(20)
        assert not request.serving.done()

        await request.quit()

        engine.go_on("subscribe")


@pytest.mark.parametrize(("transport", "body"), [("xhr_send", b"[]"), ("jsonp_send", b"d=%5B%5D")])
async def test_request_without_frames_counts_as_a_command(
    clock: Clock, transport: str, body: bytes
) -> None:
    async with open_node(clock, client_command_rates="* 1/s burst 10") as node:
        application = SockJS(None)
        visitor = Visitor(application, "s")
        await visitor.poll(node)
        assert await visitor.say(node, CONNECT) == 204
        await visitor.poll(node)

        for _ in range(100):
            await Request(application, node, "s", transport, body).end()

        assert await visitor.poll(node) == TOO_MANY_REQUESTS


def test_nodes_whose_event_loop_is_closed_are_forgotten() -> None:
    """One application serves several nodes in a process that makes an event loop for each."""
    application = SockJS(None)
    nodes: list[weakref.ref[Node]] = []

    async def serve() -> None:
        node = Node(load(dict(OPTIONS)))
        nodes.append(weakref.ref(node))
        await node.start()
        request = Visitor(application, "s").receive(node)
        await request.has(OPEN)
        await node.stop()  # at once: it has no clients
        await request.end()

    for _ in range(2):
        asyncio.run(serve())
    gc.collect()

    assert [node() is None for node in nodes] == [True, False]


# owners


async def test_node_owns_the_session_whose_first_request_it_got_for_as_long_as_it_lives(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    request = nodes.visitor().receive(one)
    await request.has(OPEN)
    for _ in range(int(3 * CLAIM_LIFETIME / CLAIM_RENEWAL)):
        await clock.advance(CLAIM_RENEWAL)
        await claimed(nodes, one)
    assert nodes.engines[0].calls["claim"] == 1 + 3 * CLAIM_LIFETIME / CLAIM_RENEWAL
    await request.quit()
    await clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: not nodes.cluster.claims)


async def test_next_renewal_repairs_one_that_failed(
    nodes: Nodes, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = nodes.nodes
    engine = nodes.engines[0]
    request = nodes.visitor().receive(one)
    await request.has(OPEN)

    engine.failing.add("claim")
    await clock.advance(CLAIM_RENEWAL)
    await eventually(lambda: engine.calls["claim"] == 2)
    await turns(20)
    engine.failing.clear()
    await clock.advance(CLAIM_RENEWAL)
    await eventually(lambda: engine.calls["claim"] == 3)
    await clock.advance(CLAIM_LIFETIME - 1)

    await claimed(nodes, one)
    assert "ERROR" not in levels(caplog)
    await request.quit()


async def test_renewal_that_arrives_after_the_release_leaves_no_claim(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    engine = nodes.engines[0]
    request = nodes.visitor().receive(one)
    await request.has(OPEN)
    engine.hold("claim")
    await clock.advance(CLAIM_RENEWAL)
    await engine.reached("claim")
    renewal = engine.held.pop("claim")  # it alone: engines with several connections overtake
    await request.quit()
    await clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: not nodes.cluster.claims)

    renewal.set()
    await eventually(lambda: "claim" not in engine.waiting)
    await turns(20)

    assert owners(nodes) == []


async def test_claim_that_could_not_be_released_does_no_harm(
    nodes: Nodes, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = nodes.nodes
    await nodes.visitor().poll(one)
    nodes.engines[0].failing.add("claim")

    await clock.advance(SESSION_TIMEOUT)
    await turns(20)

    assert owners(nodes) == [one.uid]
    await clock.advance(CLAIM_LIFETIME)
    assert owners(nodes) == []
    assert "ERROR" not in levels(caplog)
    nodes.engines[0].failing.clear()


# unavailable engines


@pytest.mark.parametrize("method", ["claim", "subscribe"])
async def test_session_cannot_begin_while_the_engine_is_away(nodes: Nodes, method: str) -> None:
    engine = nodes.engines[0]
    engine.failing.add(method)
    visitor = nodes.visitor()
    request = visitor.receive(nodes.nodes[0], "xhr")
    await request.end()
    assert request.status == 503
    engine.failing.clear()
    assert await visitor.poll(nodes.nodes[0]) == OPEN


@pytest.mark.parametrize("method", ["owner", "subscribe"])
async def test_send_is_refused_while_the_engine_is_away(nodes: Nodes, method: str) -> None:
    _, other = nodes.nodes
    visitor = await nodes.begun()
    nodes.engines[1].failing.add(method)
    assert await visitor.say(other, CONNECT) == 503
    nodes.engines[1].failing.clear()
    assert await visitor.say(other, CONNECT) == 204


async def test_session_goes_on_at_its_own_node_while_the_engine_is_away(nodes: Nodes) -> None:
    one, _ = nodes.nodes
    visitor = await nodes.begun()
    nodes.engines[0].failing.update(("claim", "owner", "publish", "subscribe"))
    assert await visitor.say(one, CONNECT) == 204
    assert '\\"id\\":1' in await visitor.poll(one)
    nodes.engines[0].failing.clear()
