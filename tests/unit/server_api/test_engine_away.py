"""The server API while the engine is away: what callers learn about the outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import pytest

from realtime.cluster.member import NewPublication
from realtime.config.reader import load
from realtime.engine.base import Outgoing, Published
from realtime.errors import EngineUnavailable, NoReply
from realtime.node.node import Node
from realtime.server_api import http, http_v2, operations
from realtime.timers import Timers
from tests.unit.parts import data
from tests.unit.suspended_engine import SuspendedBroker, SuspendedEngine

HEAD = http.Head("POST", "", None, None, None)
AWAY, SILENT = EngineUnavailable("away"), NoReply("no answer")


class FailingBroker(SuspendedBroker):
    """Publishes, or fails, as the names of channels say."""

    failures: ClassVar = {"away": AWAY, "silent": SILENT}

    async def publish(self, outgoing: Outgoing) -> Published:
        if outgoing.channel in self.failures:
            raise self.failures[outgoing.channel].with_traceback(None)
        return await super().publish(outgoing)

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        return [self.failures.get(each.channel) or Published() for each in publications]


class FailingEngine(SuspendedEngine):
    def make_broker(self, timers: Timers) -> SuspendedBroker:
        return FailingBroker(timers, self)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    node = Node(load({}), FailingEngine(Timers(asyncio.get_running_loop())))
    await node.start()
    yield node
    await node.stop()


CASES = [
    pytest.param(["away"], EngineUnavailable, 300, id="away"),
    pytest.param(["silent"], NoReply, 301, id="silent"),
    pytest.param(["away", "away"], EngineUnavailable, 300, id="all-away"),
    pytest.param(["away", "silent"], NoReply, 301, id="one-silent"),
    pytest.param(["works", "away"], NoReply, 301, id="one-works"),
]


@pytest.mark.parametrize(("channels", "failure", "code"), CASES)
async def test_failure_says_whether_something_may_have_been_published(
    node: Node, channels: list[str], failure: type[EngineUnavailable], code: int
) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await operations.publish_many(node, [NewPublication(each, data("1")) for each in channels])
    assert type(caught.value) is failure

    command = {"method": "broadcast", "params": {"channels": channels, "data": 1}}
    response = await http.handle(node, "application/json", json.dumps(command).encode())
    assert response.status == 200
    assert json.loads(response.body)["error"]["code"] == code


async def test_commands_that_fail_in_one_outage_are_one_line_in_the_log(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    command = {"method": "publish", "params": {"channel": "away", "data": 1}}

    for _ in range(2):
        await http.handle(node, "application/json", json.dumps(command).encode() * 3)
        await http_v2.handle(node, "publish", HEAD, json.dumps(command["params"]).encode())

    assert [record.getMessage() for record in caplog.records] == [
        "API command failed, as others may for now: away"
    ]
