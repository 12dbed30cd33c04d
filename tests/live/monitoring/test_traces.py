"""Traces over two processes: a worker that publishes, and a server that delivers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.api_client import AUTHORIZED, line, post
from tests.live.processes import SET_UP, environment, output
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

NAMESPACES = [{"name": "open", "publish": True}]
WORKER = """
from tests.site import traced
realtime.publish("open:{channel}", 1)
realtime.publish_many([("open:{channel}", 2), ("open:{channel}", 3)])
import json
print(json.dumps(traced.spans()))
"""
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def options(redis_server: RedisServer, unique: str) -> dict[str, Any]:
    return {"redis_url": redis_server.url, "redis_prefix": unique, "namespaces": NAMESPACES}


@pytest.fixture
def server(own_server: Callable[..., Server], options: dict[str, Any]) -> Server:
    return own_server(application="tests.site.traced:application", **options)


def spans(server: Server, name: str) -> list[dict[str, Any]]:
    """The spans of the server with this name."""
    answer = post(server, method="GET", path="/spans", headers={})
    return [span for span in json.loads(answer.body) if span["name"] == name]


async def test_publication_and_delivery_are_one_trace_over_two_processes(
    server: Server,
    options: dict[str, Any],
    connect: Callable[..., Any],
    tmp_path: Path,
    unique: str,
) -> None:
    clients = [await connect(server) for _ in range(3)]
    for client in clients:
        await client.result("subscribe", {"channel": f"open:{unique}"})

    (printed,) = output(SET_UP + WORKER.format(channel=unique), environment(tmp_path, options))
    received = [(await clients[0].publication())["data"] for _ in range(3)]

    one, several = json.loads(printed)
    delivered = spans(server, "deliver open")
    assert received == [1, 2, 3]
    assert [span["name"] for span in (one, several)] == ["publish open", "publish open"]
    assert (one["kind"], several["attributes"]["messaging.batch.message_count"]) == ("PRODUCER", 2)
    # one span for each publication, however many clients there are
    assert [span["trace"] for span in delivered] == [one["trace"], *[several["trace"]] * 2]
    assert [span["parent"] for span in delivered] == [one["span"], *[several["span"]] * 2]
    assert [span["links"] for span in delivered] == [[one["span"]], *[[several["span"]]] * 2]
    assert {span["kind"] for span in delivered} == {"CONSUMER"}


async def test_request_to_the_api_continues_the_trace_of_its_caller(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    client = await connect(server)
    await client.result("subscribe", {"channel": f"open:{unique}"})
    command = line("publish", {"channel": f"open:{unique}", "data": 1})

    answer = post(server, command, headers={**AUTHORIZED, "traceparent": PARENT})
    await client.publication()

    (api,), (publish,), (deliver,) = (
        spans(server, name) for name in ("api commands", "publish open", "deliver open")
    )
    assert answer.status == 200
    assert (api["trace"], api["parent"]) == tuple(PARENT.split("-")[1:3])
    assert (publish["parent"], deliver["parent"]) == (api["span"], publish["span"])


@pytest.mark.parametrize("traceparent", ["", "00-", "x" * 3000, "00-0-0-00", "\xff"])
def test_hostile_traceparent_begins_a_trace_of_its_own(
    server: Server, unique: str, traceparent: str
) -> None:
    command = line("publish", {"channel": f"open:{unique}", "data": 1})
    answer = post(server, command, headers={**AUTHORIZED, "traceparent": traceparent})
    (api,) = spans(server, "api commands")
    assert (answer.status, api["parent"]) == (200, None)


async def test_clients_and_connections_have_no_spans(
    own_server: Callable[..., Server], connect: Callable[..., Any], unique: str
) -> None:
    server = own_server(application="tests.site.traced:application", namespaces=NAMESPACES)
    client = await connect(server)
    await client.result("subscribe", {"channel": f"open:{unique}"})
    await client.result("publish", {"channel": f"open:{unique}", "data": 1})
    await client.publication()
    wait_until(lambda: spans(server, "deliver open"), what="the span of the delivery")
    answer = post(server, method="GET", path="/spans", headers={})
    assert {span["name"] for span in json.loads(answer.body)} == {"publish open", "deliver open"}
