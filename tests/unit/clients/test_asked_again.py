"""The site is asked again whether a client may stay subscribed: in time, and when it says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from realtime.clients.renewals import ASK_RETRY
from realtime.config.channel_options import ChannelOptions
from realtime.config.reader import load
from realtime.errors import Disconnect, Error, InternalError, LimitExceeded, PermissionDenied
from realtime.node.hooks import Caller, Hooks, Permission
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import connection_token
from tests.unit.clients.second_parts import OPTIONS, SecondConnection
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, data, turns

TTL = 40.0
YES = Permission(ttl=TTL)


class Site(Hooks):
    """Decides about every channel, as the test says."""

    def __init__(self) -> None:
        self.answers: Iterator[Permission | Exception] = iter(())
        """The next ones; then it allows."""
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None
        """Keeps the site from answering until it is set."""

    def decides(self, channel: str, options: ChannelOptions) -> bool:
        return True

    async def subscribe(self, caller: Caller, channel: str, token: str) -> Permission:
        self.asked.append(channel)
        answer = next(self.answers, YES)
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def node(clock: Clock, site: Site) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS), hooks=site)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture(params=[1, 2], ids=["first", "second"])
async def connection(request: pytest.FixtureRequest, node: Node) -> Connection:
    """A client of each generation, subscribed to one channel."""
    if request.param == 1:
        older = Connection(node)
        await older.say(1, 0, token=connection_token("17"))
        await older.subscribe("plain:a")
        return older
    newer = SecondConnection(node)
    await newer.call("connect", token=connection_token("17"))
    assert await newer.call("subscribe", channel="plain:a") == {}
    return newer


def is_subscribed(connection: Connection, channel: str = "plain:a") -> bool:
    return channel in connection.client.session.subscriptions


def unsubscribed(connection: Connection) -> list[Any]:
    """The codes with which the client was unsubscribed; older clients get none."""
    if isinstance(connection, SecondConnection):
        return [push["unsubscribe"]["code"] for push in connection.pushed if "unsubscribe" in push]
    return [None for push in connection.pushes if push.get("type") == 3]


async def test_site_is_asked_time_and_again_and_the_client_learns_nothing(
    connection: Connection, site: Site, clock: Clock
) -> None:
    before = list(connection.messages)
    for times in (2, 3, 4):
        await clock.advance(TTL - 1)
        assert len(site.asked) == times - 1
        await clock.advance(1)
        assert len(site.asked) == times
    assert connection.messages == before
    assert is_subscribed(connection)


async def test_permission_without_end_is_never_asked_for_again(
    node: Node, site: Site, clock: Clock
) -> None:
    site.answers = iter([Permission()])
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="plain:a")
    await clock.advance(100_000)
    assert site.asked == ["plain:a"]


async def test_client_that_may_not_stay_is_unsubscribed(
    connection: Connection, site: Site, clock: Clock, node: Node
) -> None:
    site.answers = iter([PermissionDenied()])
    await clock.advance(TTL)
    assert not is_subscribed(connection)
    # it does not come back by itself
    assert unsubscribed(connection) in ([2000], [None])
    before = list(connection.messages)
    await node.publish("plain:a", data("1"), ChannelOptions())
    await turns()
    assert connection.messages == before
    await clock.advance(10 * TTL)
    assert len(site.asked) == 2


async def test_site_may_close_the_connection(
    connection: Connection, site: Site, clock: Clock
) -> None:
    site.answers = iter([Disconnect.received(4501, "banned", reconnect=False)])
    await clock.advance(TTL)
    assert connection.closes == [4501]


FAILURES: dict[str, type[Error]] = {"failed": InternalError, "overdue": LimitExceeded}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_site_that_fails_once_is_asked_again_soon(
    connection: Connection, site: Site, clock: Clock, failure: type[Error]
) -> None:
    site.answers = iter([failure(), YES, failure(), YES])
    for times in (3, 5):  # a success forgives the failure before
        await clock.advance(TTL)
        assert is_subscribed(connection)
        await clock.advance(ASK_RETRY)
        assert len(site.asked) == times
    assert is_subscribed(connection)


async def test_client_comes_back_to_a_site_that_goes_on_failing(
    connection: Connection, site: Site, clock: Clock
) -> None:
    site.answers = iter([InternalError(), InternalError()])
    await clock.advance(TTL)
    await clock.advance(ASK_RETRY)
    if isinstance(connection, SecondConnection):
        assert unsubscribed(connection) == [2501]  # with which it subscribes again
        assert connection.closes == []
    else:
        assert connection.closes == [3006]


async def test_new_channel_info_is_that_of_the_last_answer(
    connection: Connection, site: Site, clock: Clock
) -> None:
    site.answers = iter([Permission(data('{"a":1}'), TTL)])
    await clock.advance(TTL)
    assert connection.client.info_in("plain:a").chan_info == data('{"a":1}')


# when the site says so


async def test_site_is_asked_at_once_when_it_says_so(
    connection: Connection, site: Site, node: Node, clock: Clock
) -> None:
    site.answers = iter([YES, PermissionDenied()])
    await node.ask_again("18", "plain:a")
    await node.ask_again("17", "plain:b")
    await turns()
    assert len(site.asked) == 1
    await node.ask_again("17", "plain:a")
    await turns()
    assert is_subscribed(connection)
    await clock.advance(TTL - 1)
    assert len(site.asked) == 2

    await node.ask_again("17", "")
    await turns()

    assert not is_subscribed(connection)


async def test_answer_from_before_the_call_does_not_count(
    connection: Connection, site: Site, node: Node, clock: Clock
) -> None:
    site.gate = asyncio.Event()
    site.answers = iter([Permission(data("1"), TTL), PermissionDenied()])
    await clock.advance(TTL)
    await node.ask_again("17", "plain:a")
    await turns()
    site.gate.set()
    await turns(20)
    assert not is_subscribed(connection)


async def test_subscription_in_the_making_is_made_and_asked_about_again(
    node: Node, site: Site, clock: Clock
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    site.gate = asyncio.Event()
    site.answers = iter([YES, PermissionDenied()])
    subscribing = connection.begin("subscribe", channel="plain:a")
    await turns()
    await node.ask_again("17", "plain:a")
    site.gate.set()
    assert await subscribing == {}

    await clock.advance(0.001)
    await turns(20)

    assert not is_subscribed(connection)
    assert unsubscribed(connection) == [2000]


async def test_client_that_left_meanwhile_is_not_concerned(
    node: Node, site: Site, clock: Clock
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="plain:a")
    site.gate = asyncio.Event()
    site.answers = iter([PermissionDenied(), YES])
    await clock.advance(TTL)
    site_gate, site.gate = site.gate, None
    await connection.call("unsubscribe", channel="plain:a")
    assert await connection.call("subscribe", channel="plain:a") == {}
    site_gate.set()
    await turns(20)

    assert is_subscribed(connection)
    assert unsubscribed(connection) == []
