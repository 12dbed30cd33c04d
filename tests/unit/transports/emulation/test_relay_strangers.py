"""A session whose client a hook may know by a cookie, and requests for it at any node."""

from __future__ import annotations

import pytest

from realtime.cluster.direct import NodeID
from realtime.node.hooks import NO_HANDSHAKE, Hooks
from realtime.transports.emulation.ownership import Bearer
from realtime.transports.emulation.relay_messages import Attach, Deliver, RelayLink, RelayMessage
from tests.unit.transports.emulation.nodes import Nodes
from tests.unit.transports.emulation.parts import CONNECT, OPEN, Visitor, ids_in

AT = pytest.mark.parametrize("at", [0, 1], ids=["owner", "relay"])
FIRST = "visitor=alice; _analytics=1"


class CookieReader(Hooks):
    wants_handshake = True


async def begin(nodes: Nodes, cookie: str, at: int = 0) -> tuple[Visitor, str]:
    """Begin a session with a cookie; returns its visitor, and the cookie that the response sets."""
    for node in nodes.nodes:
        node.hooks = CookieReader()
    visitor = nodes.visitor()
    visitor.cookie = cookie
    request = visitor.receive(nodes.nodes[at], "xhr")
    assert await request.end() == [OPEN]
    [*values] = [value.decode() for name, value in request.headers if name == b"set-cookie"]
    return visitor, "".join(values)


@AT
@pytest.mark.parametrize(
    "cookie",
    ["", "visitor=mallory", "visitor=alice", "realtime_session=guessed", "realtime_session="],
)
async def test_stranger_who_knows_the_name_neither_writes_nor_reads(
    nodes: Nodes, at: int, cookie: str
) -> None:
    node = nodes.nodes[at]
    visitor, _ = await begin(nodes, FIRST)
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
async def test_client_whose_other_cookies_change_goes_on(nodes: Nodes, at: int) -> None:
    """Sessions slide, load balancers and analytics write cookies at every response."""
    visitor, cookie = await begin(nodes, FIRST)
    value, *attributes = cookie.split("; ")
    assert attributes == ["Max-Age=86400", "HttpOnly"], "no path: that of the session counts"
    visitor.cookie = f"visitor=signed-anew; _analytics=2; {value}; realtime_session=of-a-subdomain"
    assert await visitor.say(nodes.nodes[at], CONNECT) == 204
    assert ids_in([await visitor.poll(nodes.nodes[at])]) == [1]


@AT
async def test_client_that_keeps_no_cookies_goes_on_with_its_own(nodes: Nodes, at: int) -> None:
    visitor, _ = await begin(nodes, FIRST, at)
    assert await visitor.say(nodes.nodes[1 - at], CONNECT) == 204


async def test_client_without_a_cookie_gets_none_and_has_the_name(nodes: Nodes) -> None:
    visitor, cookie = await begin(nodes, "")
    assert cookie == ""
    assert await visitor.say(nodes.nodes[1], CONNECT) == 204


async def test_each_session_has_a_cookie_of_its_own(nodes: Nodes) -> None:
    first, cookie = await begin(nodes, FIRST)
    _, other = await begin(nodes, FIRST)
    assert cookie != other
    first.cookie = other.partition(";")[0]
    assert await first.say(nodes.nodes[0], CONNECT) == 403


async def test_program_with_a_token_is_known_by_it_or_by_the_cookie() -> None:
    def bearer(**headers: str) -> Bearer:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        return Bearer(CookieReader(), {"headers": pairs}, lambda: NO_HANDSHAKE)

    first = bearer(authorization="Bearer token")
    owner = first.begin()
    assert first.set_cookie is not None
    cookie = first.set_cookie[1].decode().partition(";")[0]
    assert owner.sent(bearer(authorization="Bearer token"))
    assert owner.sent(bearer(authorization="Bearer renewed", cookie=cookie))
    assert not owner.sent(bearer(authorization="Bearer renewed"))


async def test_requests_that_an_older_node_relays_are_taken(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows auth sessions only, and cannot say more."""
    visitor, _ = await begin(nodes, FIRST)
    ask = RelayLink.ask

    async def ask_as_before(
        self: RelayLink, to: NodeID, question: RelayMessage, timeout: float = 2.0
    ) -> bool:
        if isinstance(question, Attach):
            question = Attach(question.session, question.receiver, question.limit, "")
        elif isinstance(question, Deliver):
            question = Deliver(question.session, question.frames, "")
        return await ask(self, to, question, timeout)

    monkeypatch.setattr(RelayLink, "ask", ask_as_before)

    assert await visitor.say(nodes.nodes[1], CONNECT) == 204
