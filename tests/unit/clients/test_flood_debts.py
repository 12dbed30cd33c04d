"""What a client that sent too much finds when it comes back, and what others find."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.node.hooks import Handshake
from realtime.node.limits import flood_debts
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, turns

RPC, UNKNOWN = 9, 99
NOT_FOUND, NOT_AVAILABLE, TOO_MANY = 104, 108, 111
FLOODED = 3008
HOME, OFFICE, NETWORK = "192.0.2.1", "192.0.2.2", "2001:db8::1"


@pytest.fixture
async def node(clock: Clock, request: pytest.FixtureRequest) -> AsyncIterator[Node]:
    """A node with the rates of the test's parameter, by default four commands at once."""
    rates = getattr(request, "param", "* 2/s burst 4")
    options = {"token_hmac_secret_key": SECRET, "client_anonymous": True}
    node = Node(load(options | {"client_command_rates": rates}))
    await node.start()
    yield node
    await stop(node, clock, SHUTDOWN_TIMEOUT)


async def come(node: Node, user: str, address: str = HOME) -> Connection:
    """Connect; "" is an anonymous client."""
    connection = Connection(node)
    connection.client.session.handshake = Handshake(address=address)
    await connection.say(1, 0, **({"token": connection_token(user)} if user else {}))
    assert connection.reply(1) is not None
    assert "error" not in connection.messages[0]
    return connection


async def codes(connection: Connection, number: int, method: int = UNKNOWN) -> list[int]:
    """The error codes of so many commands."""
    begun = len(connection.messages)
    for _ in range(number):
        await connection.say(7, method)
    await turns()
    return [message["error"]["code"] for message in connection.messages[begun:]]


async def flood(connection: Connection, method: int = UNKNOWN) -> None:
    """Send until the connection is closed."""
    await codes(connection, 100, method)
    assert connection.closes == [FLOODED]


@pytest.mark.parametrize(("user", "address"), [("17", HOME), ("17", OFFICE), ("", HOME)])
async def test_who_comes_back_from_a_flood_begins_with_the_debt(
    node: Node, clock: Clock, user: str, address: str
) -> None:
    await flood(await come(node, user))
    again = await come(node, user, address)
    at_once = await codes(again, 2)
    await clock.advance(0.5)
    later = await codes(again, 2)
    assert at_once == [TOO_MANY, TOO_MANY]
    assert later == [NOT_FOUND, TOO_MANY]
    assert again.closes == []


async def test_debt_is_paid_by_time(node: Node, clock: Clock) -> None:
    await flood(await come(node, "17"))
    await clock.advance(2)
    assert await codes(await come(node, "17"), 4) == [NOT_FOUND] * 3 + [TOO_MANY]


async def test_debt_grows_no_further_by_coming_back(node: Node, clock: Clock) -> None:
    for _ in range(5):
        await flood(await come(node, "17"))
    await clock.advance(2)
    assert await codes(await come(node, "17"), 3) == [NOT_FOUND] * 3


async def test_who_leaves_at_the_first_refusal_has_the_debt_too(node: Node) -> None:
    connection = await come(node, "17")
    assert await codes(connection, 4) == [NOT_FOUND] * 3 + [TOO_MANY]
    connection.client.close(None)
    await turns()
    assert await codes(await come(node, "17"), 1) == [TOO_MANY]


async def test_who_was_never_refused_has_none(node: Node) -> None:
    connection = await come(node, "17")
    assert await codes(connection, 3) == [NOT_FOUND] * 3
    connection.client.close(None)
    await turns()
    assert await codes(await come(node, "17"), 3) == [NOT_FOUND] * 3


@pytest.mark.parametrize(
    ("flooder", "other", "is_same"),
    [
        (("17", HOME), ("18", HOME), False),
        (("17", HOME), ("", HOME), False),
        (("", HOME), ("17", HOME), False),
        (("", HOME), ("", OFFICE), False),
        (("", HOME), ("", ""), False),
        (("", ""), ("", ""), True),
        (("", NETWORK), ("", "2001:db8::2"), True),
        (("", NETWORK), ("", "2001:db8:0:1::1"), False),
        # a user whose ID is an address
        ((HOME, OFFICE), ("", HOME), False),
    ],
)
async def test_debt_is_that_of_the_user_or_of_the_address_without_one(
    node: Node, flooder: tuple[str, str], other: tuple[str, str], is_same: bool
) -> None:
    await flood(await come(node, *flooder))
    assert (await codes(await come(node, *other), 1) == [TOO_MANY]) is is_same


async def test_others_behind_the_address_go_on(node: Node, clock: Clock) -> None:
    there_before = await come(node, "")
    await flood(await come(node, ""))
    newcomers = [await come(node, "") for _ in range(3)]
    await clock.advance(0.5)
    assert await codes(there_before, 3) == [NOT_FOUND] * 3
    # each has its own: none takes what another one waits for
    assert [await codes(one, 1) for one in newcomers] == [[NOT_FOUND]] * 3


@pytest.mark.parametrize("node", ["rpc 1/h, * 100/s"], indirect=True)
@pytest.mark.parametrize(("user", "expected"), [("", NOT_AVAILABLE), ("17", TOO_MANY)])
async def test_debt_of_an_address_lasts_a_minute_at_most(
    node: Node, clock: Clock, user: str, expected: int
) -> None:
    await flood(await come(node, user), RPC)
    during = await codes(await come(node, user), 1, RPC)
    await clock.advance(flood_debts.MAX_OF_ADDRESS)
    assert during == [TOO_MANY]
    assert await codes(await come(node, user), 1, RPC) == [expected]


@pytest.mark.parametrize("node", ["* 1/h burst 3"], indirect=True)
async def test_debts_do_not_fill_memory(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flood_debts, "MAX_DEBTS", 10)
    for number in range(50):
        await flood(await come(node, str(number)))
        assert len(node.flood_debts._debts) <= 10
    assert await codes(await come(node, "49"), 1) == [TOO_MANY]
    assert await codes(await come(node, "0"), 1) == [NOT_FOUND]
