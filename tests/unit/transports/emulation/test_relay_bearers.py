"""A session that belongs to an auth session or to who bears its cookie: requests at any node."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.cluster.direct import NodeID
from realtime.node.hooks import NO_HANDSHAKE, Handshake, Hooks
from realtime.transports.emulation.owning_client import Bearer
from realtime.transports.emulation.relay_messages import Attach, Deliver, RelayLink, RelayMessage
from tests.unit.transports.emulation.nodes import Nodes
from tests.unit.transports.emulation.parts import CONNECT, OPEN, Visitor, ids_in

AT = pytest.mark.parametrize("at", [0, 1], ids=["owner", "relay"])
FIRST = "visitor=alice; _analytics=1"


class CookieReader(Hooks):
    wants_handshake = True


class Logins(CookieReader):
    """The cookie of a request is its auth session."""

    def auth_session_of(self, handshake: Handshake) -> str:
        return handshake.headers.get("cookie", "")


async def begin(nodes: Nodes, hooks: Hooks, cookie: str, at: int = 0) -> tuple[Visitor, str]:
    """Begin a session with a cookie; returns its visitor, and the cookie that the response sets."""
    for node in nodes.nodes:
        node.hooks = hooks
    visitor = nodes.visitor()
    visitor.cookie = cookie
    request = visitor.receive(nodes.nodes[at], "xhr")
    assert await request.end() == [OPEN]
    return visitor, request.headers.get(b"set-cookie", b"").decode()


@AT
@pytest.mark.parametrize(
    ("hooks", "cookie"),
    [
        (Logins(), ""),
        (Logins(), "a=2"),
        (CookieReader(), ""),
        (CookieReader(), "visitor=mallory"),
        (CookieReader(), "visitor=alice"),
        (CookieReader(), "realtime_session=guessed"),
        (CookieReader(), "realtime_session="),
    ],
)
async def test_stranger_who_knows_the_name_neither_writes_nor_reads(
    nodes: Nodes, at: int, hooks: Hooks, cookie: str
) -> None:
    node = nodes.nodes[at]
    visitor, _ = await begin(nodes, hooks, FIRST)
    stranger = nodes.visitor()
    stranger.name, stranger.cookie = visitor.name, cookie

    assert await stranger.say(node, CONNECT) == 403
    for transport in ("xhr", "xhr_streaming", "eventsource", "htmlfile"):
        request = stranger.receive(node, transport)
        await request.end()
        assert (request.status, request.text) == (403, "Forbidden\n")

    # the session is as it was
    assert await visitor.say(node, CONNECT) == 204
    assert ids_in([await visitor.poll(node)]) == [1]


@AT
@pytest.mark.parametrize("hooks", [Logins(), CookieReader()])
async def test_session_that_began_without_a_cookie_is_open_to_every_request(
    nodes: Nodes, at: int, hooks: Hooks
) -> None:
    visitor, cookie = await begin(nodes, hooks, "")
    visitor.cookie = "a=1"
    assert cookie == ""
    assert await visitor.say(nodes.nodes[at], CONNECT) == 204
    assert ids_in([await visitor.poll(nodes.nodes[at])]) == [1]


@AT
async def test_session_that_has_ended_tells_every_request_so(nodes: Nodes, at: int) -> None:
    visitor, _ = await begin(nodes, Logins(), "a=1")
    await visitor.say(nodes.nodes[0], "{}")
    assert (await visitor.poll(nodes.nodes[0])).startswith("c[3003,")
    visitor.cookie = ""
    assert (await visitor.poll(nodes.nodes[at])).startswith("c[3003,")


@AT
async def test_client_whose_other_cookies_change_goes_on(nodes: Nodes, at: int) -> None:
    """Sessions slide, load balancers and analytics write cookies at every response."""
    visitor, cookie = await begin(nodes, CookieReader(), FIRST)
    value, *attributes = cookie.split("; ")
    assert attributes == ["Max-Age=86400", "HttpOnly"], "no path: that of the session counts"
    visitor.cookie = f"visitor=signed-anew; _analytics=2; {value}; realtime_session=of-a-subdomain"
    assert await visitor.say(nodes.nodes[at], CONNECT) == 204
    assert ids_in([await visitor.poll(nodes.nodes[at])]) == [1]


@AT
async def test_client_that_keeps_no_cookies_goes_on_with_its_own(nodes: Nodes, at: int) -> None:
    visitor, _ = await begin(nodes, CookieReader(), FIRST, at)
    assert await visitor.say(nodes.nodes[1 - at], CONNECT) == 204


async def test_each_session_has_a_cookie_of_its_own(nodes: Nodes) -> None:
    first, cookie = await begin(nodes, CookieReader(), FIRST)
    _, other = await begin(nodes, CookieReader(), FIRST)
    assert cookie != other
    first.cookie = other.partition(";")[0]
    assert await first.say(nodes.nodes[0], CONNECT) == 403


def test_program_with_a_token_is_known_by_it_or_by_the_cookie() -> None:
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


@pytest.mark.parametrize(("hooks", "known"), [(Logins(), ()), (CookieReader(), ("",))])
async def test_requests_that_an_older_node_relays_are_taken(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, hooks: Hooks, known: Any
) -> None:
    """It knows auth sessions at most, and cannot say more."""
    visitor, _ = await begin(nodes, hooks, FIRST)
    ask = RelayLink.ask

    def ask_as_before(self: RelayLink, to: NodeID, question: RelayMessage, *more: Any) -> Any:
        if isinstance(question, Attach):
            question = Attach(question.session, question.receiver, question.limit, *known)
        elif isinstance(question, Deliver):
            question = Deliver(question.session, question.frames, *known)
        return ask(self, to, question, *more)

    monkeypatch.setattr(RelayLink, "ask", ask_as_before)
    relay = nodes.nodes[1]

    assert await visitor.say(relay, CONNECT) == 204
    assert ids_in([await visitor.poll(relay)]) == [1]
