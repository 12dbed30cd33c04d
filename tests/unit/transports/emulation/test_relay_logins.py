"""A session that belongs to an auth session, and requests for it at any node."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.cluster.direct import NodeID
from realtime.node.hooks import Handshake, Hooks
from realtime.transports.emulation.relay_messages import Attach, Deliver, RelayLink, RelayMessage
from tests.unit.transports.emulation.nodes import Nodes
from tests.unit.transports.emulation.parts import CONNECT, OPEN, Visitor, ids_in


class Cookies(Hooks):
    """The cookie of a request is its auth session."""

    wants_handshake = True

    def auth_session_of(self, handshake: Handshake) -> str:
        return handshake.headers.get("cookie", "")


@pytest.fixture
async def visitor(nodes: Nodes) -> Visitor:
    """A visitor with a cookie, whose session is at the first node."""
    for node in nodes.nodes:
        node.hooks = Cookies()
    visitor = nodes.visitor()
    visitor.cookie = "a=1"
    assert await visitor.poll(nodes.nodes[0]) == OPEN
    return visitor


AT = pytest.mark.parametrize("at", [0, 1], ids=["owner", "relay"])
OTHERS = pytest.mark.parametrize("cookie", ["", "a=2"], ids=["no cookie", "another cookie"])


@AT
@OTHERS
async def test_request_with_another_auth_session_neither_writes_nor_reads(
    nodes: Nodes, visitor: Visitor, at: int, cookie: str
) -> None:
    node = nodes.nodes[at]
    stranger = nodes.visitor()
    stranger.name, stranger.cookie = visitor.name, cookie

    assert await stranger.say(node, CONNECT) == 403
    for transport in ("xhr", "xhr_streaming", "eventsource", "htmlfile"):
        request = stranger.receive(node, transport)
        await request.end()
        assert (request.status, request.body) == (403, b"Forbidden\n")

    # the session is as it was
    assert await visitor.say(node, CONNECT) == 204
    assert ids_in([await visitor.poll(node)]) == [1]


@AT
async def test_session_without_an_auth_session_is_open_to_every_request(
    nodes: Nodes, visitor: Visitor, at: int
) -> None:
    node = nodes.nodes[at]
    other = nodes.visitor()
    assert await other.poll(nodes.nodes[0]) == OPEN
    other.cookie = "a=1"
    assert await other.say(node, CONNECT) == 204
    assert ids_in([await other.poll(node)]) == [1]


@AT
async def test_session_that_has_ended_tells_every_request_so(
    nodes: Nodes, visitor: Visitor, at: int
) -> None:
    node = nodes.nodes[at]
    await visitor.say(nodes.nodes[0], "{}")
    assert (await visitor.poll(nodes.nodes[0])).startswith("c[3003,")
    visitor.cookie = ""
    assert (await visitor.poll(node)).startswith("c[3003,")


async def test_requests_that_an_older_node_relays_are_taken(
    nodes: Nodes, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = RelayLink.ask

    def ask_as_before(self: RelayLink, to: NodeID, question: RelayMessage, *more: Any) -> Any:
        if isinstance(question, Attach):
            question = Attach(question.session, question.receiver, question.limit)
        elif isinstance(question, Deliver):
            question = Deliver(question.session, question.frames)
        return ask(self, to, question, *more)

    monkeypatch.setattr(RelayLink, "ask", ask_as_before)
    relay = nodes.nodes[1]

    assert await visitor.say(relay, CONNECT) == 204
    assert ids_in([await visitor.poll(relay)]) == [1]
