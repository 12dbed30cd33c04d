"""When the site refreshes a connection that it could not refresh. docs/protocol.md, 7.3."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

import pytest

from realtime.config.reader import load
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import Caller, Hooks, Refreshed
from realtime.node.node import Node
from tests.conftest import connection_token
from tests.live.proxy.application import Application
from tests.server import SECRET
from tests.unit.node.node_parts import Connection
from tests.unit.parts import Clock, eventually, turns

GRACE = 60.0
"""Seconds a connection goes on after a failed call."""


@pytest.fixture
def application() -> Iterator[Application]:
    application = Application()
    yield application
    application.stop()


@pytest.fixture
async def node(clock: Clock, application: Application) -> AsyncIterator[Node]:
    """A node that asks the application, with the clock of the test."""
    url = application.url("/refresh")
    config = load({"token_hmac_secret_key": SECRET, "proxy_refresh_endpoint": url})
    made = Node(config, hooks=SiteHooks(config, Registry()))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def connection(node: Node, clock: Clock, application: Application) -> Connection:
    """A connection that has expired and that the application failed to refresh."""
    connection = await connect(node)
    application.answer("/refresh", status=500)
    await clock.advance(101)
    await eventually(lambda: deadline(connection) == clock.now + GRACE)
    return connection


async def connect(node: Node) -> Connection:
    """Connect a client for a hundred seconds."""
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17", ttl=100))
    return connection


def deadline(connection: Connection) -> float:
    return connection.client.session.expiry_deadline or 0


async def test_after_a_failed_call_the_site_is_asked_again_60_seconds_later(
    connection: Connection, clock: Clock, application: Application
) -> None:
    await clock.advance(GRACE - 1)
    await turns(50)
    assert len(application.requests) == 1
    application.answer("/refresh", {"result": {"expire_at": int(time.time()) + 500}})
    await clock.advance(1)
    await eventually(lambda: len(application.requests) == 2)
    await eventually(lambda: deadline(connection) > clock.now + 400)
    assert connection.closes == []


async def test_after_a_failed_call_an_answer_that_refuses_closes_the_connection(
    connection: Connection, clock: Clock, application: Application
) -> None:
    application.answer("/refresh", {"result": {"expired": True}})
    await clock.advance(GRACE)
    await eventually(lambda: connection.closes == [3005])


class BrokenHooks(Hooks):
    """Fails with an exception that no code expects."""

    refreshes = True

    async def refresh(self, caller: Caller, login: str) -> Refreshed | None:
        raise LookupError("not thought of")


async def test_connection_whose_refresh_fails_goes_on_and_the_log_says_why(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(load({"token_hmac_secret_key": SECRET}), hooks=BrokenHooks())
    await node.start()
    connection = await connect(node)
    await clock.advance(101)
    await eventually(lambda: deadline(connection) == clock.now + GRACE)
    assert connection.closes == []
    assert "LookupError: not thought of" in caplog.text
    await node.stop()
