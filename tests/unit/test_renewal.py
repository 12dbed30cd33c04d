"""When the site is asked again whether a connection may go on. Protocol reference, section 7.3."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from realtime.client import Client
from realtime.errors import Disconnect
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node import Node
from realtime.options_reader import load
from realtime.outbox import Frame
from tests.conftest import connection_token
from tests.live.application import Application
from tests.server import SECRET
from tests.unit.parts import Clock, eventually, turns

GRACE = 60.0
"""Seconds a connection goes on after a failed call."""


class RecordingTransport:
    """Keeps what a client is sent."""

    name = "websocket"
    ready = True

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.disconnects: list[Disconnect] = []

    def send(self, frame: Frame) -> int:
        self.frames.append(frame.data)
        return 0

    async def close(self, disconnect: Disconnect) -> None:
        self.disconnects.append(disconnect)


@pytest.fixture
def application() -> Iterator[Application]:
    application = Application()
    yield application
    application.stop()


@pytest.fixture
async def node(clock: Clock, application: Application) -> AsyncIterator[Node]:
    """A node that asks the application, in the test's time."""
    url = application.url("/refresh")
    config = load({"token_hmac_secret_key": SECRET, "proxy_refresh_endpoint": url})
    made = Node(config, hooks=SiteHooks(config, Registry()))
    await made.start()
    yield made
    await made.stop()


async def test_after_a_failed_call_the_site_is_asked_again_60_seconds_later(
    node: Node, clock: Clock, application: Application
) -> None:
    transport = RecordingTransport()
    client = Client(node, transport, node.codecs["json"])
    token = connection_token("17", ttl=100)
    await client.receive(json.dumps({"id": 1, "params": {"token": token}}).encode())
    application.answer("/refresh", status=500)
    await clock.advance(101)
    await eventually(lambda: client.session.expiry_deadline == clock.now + GRACE)

    await clock.advance(GRACE - 1)
    await turns(50)
    assert len(application.requests) == 1
    application.answer("/refresh", {"result": {"expire_at": int(time.time()) + 500}})
    await clock.advance(1)

    await eventually(lambda: len(application.requests) == 2)
    await eventually(lambda: (client.session.expiry_deadline or 0) > clock.now + 400)
    assert transport.disconnects == []
    client.close(None)


async def test_after_a_failed_call_an_answer_that_refuses_closes_the_connection(
    node: Node, clock: Clock, application: Application
) -> None:
    transport = RecordingTransport()
    client = Client(node, transport, node.codecs["json"])
    token = connection_token("17", ttl=100)
    await client.receive(json.dumps({"id": 1, "params": {"token": token}}).encode())
    application.answer("/refresh", status=500)
    await clock.advance(101)
    await eventually(lambda: client.session.expiry_deadline == clock.now + GRACE)

    application.answer("/refresh", {"result": {"expired": True}})
    await clock.advance(GRACE)

    await eventually(lambda: transport.disconnects != [])
    assert [disconnect.code for disconnect in transport.disconnects] == [3005]
