"""What is legal in the second generation, in order: frames, connect, pongs, and what fails.

The tables of docs/protocol.md, 16.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.protocol.v1.json import JSONCodec
from tests.conftest import connection_token
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.node.node_parts import Connection
from tests.unit.parts import Clock, turns

New = Callable[[], SecondConnection]

INVALID_TOKEN, BAD_REQUEST, STALE, NO_PONG = 3500, 3501, 3502, 3012
INTERVAL, TIMEOUT, STALE_DELAY = 25, 8, 25


def token() -> str:
    return connection_token("17")


# the first frame


async def test_first_frame_decides_and_later_ones_do_not(new: New) -> None:
    connection = new()
    await connection.call("connect", token=token())
    await connection.frame({"id": 2, "method": 7})
    await turns()
    assert connection.closes == [BAD_REQUEST]


@pytest.mark.parametrize(("generation", "code"), [(1, 3003), (2, 3501)])
async def test_log_has_the_code_of_the_generation(
    second_node: Node, new: New, caplog: pytest.LogCaptureFixture, generation: int, code: int
) -> None:
    connection = new() if generation == 2 else Connection(second_node)
    first = b'{"id":1,"subscribe":{}}' if generation == 2 else b"{}"
    with caplog.at_level("INFO", "realtime.client"):
        await connection.dispatcher.receive(first)
        await turns()
    assert f": {code}: bad request" in caplog.text
    assert connection.closes == [code]


async def test_client_of_the_first_generation_stays_one(second_node: Node) -> None:
    connection = Connection(second_node)
    await connection.say(1, 0, token=token())
    await connection.dispatcher.receive(b'{"id":2,"subscribe":{"channel":"a"}}')
    await turns()
    assert isinstance(connection.client.codec, JSONCodec)
    assert connection.closes == [3003]


@pytest.mark.parametrize(
    ("options", "is_told"),
    [({"client_connect_include_server_time": True}, True), ({}, False)],
    indirect=["options"],
)
async def test_reply_to_connect_has_the_time_if_the_site_wants_it(new: New, is_told: bool) -> None:
    before = time.time()
    result = await new().call("connect", token=token())
    if is_told:
        assert int(before * 1000) <= result["time"] <= time.time() * 1000
    else:
        assert "time" not in result


async def test_commands_behind_connect_in_its_frame_are_answered(new: New) -> None:
    connection = new()
    await connection.frame(
        {"connect": {"token": token()}, "id": 1},
        {"subscribe": {"channel": "a"}, "id": 2},
        {"subscribe": {"channel": "unknown:a"}, "id": 3},
    )
    await turns()
    assert connection.reply(1) is not None
    assert "subscribe" in (connection.reply(2) or {})
    assert (connection.reply(3) or {})["error"]["code"] == 102


# what closes


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("{}", id="pong that nobody asked for"),
        pytest.param('{"rpc":{}}', id="no id"),
        pytest.param('{"id":5}', id="no request"),
        pytest.param('{"id":5,"nope":{}}', id="unknown request"),
        pytest.param('{"id":5,"ping":{}}', id="ping of the client"),
        pytest.param('{"id":5,"connect":{}}', id="second connect"),
        pytest.param('{"id":5,"subscribe":{}}', id="no channel"),
        pytest.param('{"id":5,"unsubscribe":{"channel":""}}', id="empty channel"),
        pytest.param('{"id":5,"publish":{"data":1}}', id="publish without channel"),
        pytest.param('{"id":5,"presence":{}}', id="presence without channel"),
        pytest.param('{"id":5,"presence_stats":{}}', id="presence_stats without channel"),
        pytest.param('{"id":5,"history":{}}', id="history without channel"),
        pytest.param('{"id":5,"refresh":{}}', id="refresh without token"),
        pytest.param('{"id":5,"sub_refresh":{}}', id="sub_refresh without channel"),
        pytest.param("", id="empty frame"),
        pytest.param("hello", id="no JSON"),
    ],
)
async def test_malformed_command_closes_for_good(connect: Connect, frame: str) -> None:
    connection = await connect()
    await connection.raw(frame)
    await turns()
    assert connection.closes == [BAD_REQUEST]


@pytest.mark.parametrize("method", ["subscribe", "publish", "rpc", "refresh"])
async def test_command_before_connect_closes_for_good(new: New, method: str) -> None:
    connection = new()
    await connection.call(method, channel="a", data=1)
    await turns()
    assert connection.closes == [BAD_REQUEST]


async def test_send_is_ignored(connect: Connect) -> None:
    connection = await connect()
    await connection.frame({"send": {"data": 1}})
    assert await connection.call("presence", channel="a") == {"error": 103}
    assert connection.closes == []


# connect


async def test_result_of_connect_announces_pings(new: New) -> None:
    result = await new().call("connect", token=token())
    assert (result["ping"], result["pong"]) == (INTERVAL, True)
    assert not {"session", "node"} & set(result)


@pytest.mark.parametrize(
    ("params", "code"),
    [({"token": "x.y.z"}, INVALID_TOKEN), ({}, BAD_REQUEST), ({"token": 5}, BAD_REQUEST)],
    ids=["invalid token", "no token", "token of a wrong type"],
)
async def test_connect_that_closes(new: New, params: dict[str, object], code: int) -> None:
    connection = new()
    await connection.call("connect", **params)
    await turns()
    assert connection.closes == [code]


async def test_connect_that_fails_is_the_last_thing_that_is_read(new: New, clock: Clock) -> None:
    connection = new()

    await connection.frame(
        {"connect": {"token": connection_token("17", ttl=-10)}, "id": 1},
        {"connect": {"token": token()}, "id": 2},
    )
    await connection.call("connect", token=token())
    await connection.raw("not even JSON")
    await turns()

    assert [message["id"] for message in connection.messages] == [1]
    assert connection.messages[0]["error"] == {"code": 109, "message": "token expired"}
    assert connection.closes == []
    await clock.advance(STALE_DELAY)
    assert connection.closes == [STALE]


async def test_silent_client_is_closed_in_the_first_generation(new: New, clock: Clock) -> None:
    connection = new()
    await clock.advance(STALE_DELAY)
    assert connection.closes == [3007]


# pings


async def test_pings_come_and_pongs_are_taken(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    for _ in range(3):
        before = connection.pings
        while connection.pings == before:
            await clock.advance(INTERVAL / 200)
        await connection.raw("{}")
    await clock.advance(TIMEOUT)
    assert connection.closes == []


async def test_pong_comes_once_for_each_ping(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    while not connection.pings:
        await clock.advance(INTERVAL / 200)
    await connection.raw("{}\n{}")
    await turns()
    assert connection.closes == [BAD_REQUEST]


async def test_missing_pong_closes_and_other_commands_do_not_count(
    connect: Connect, clock: Clock
) -> None:
    connection = await connect()
    while not connection.pings:
        await clock.advance(INTERVAL / 200)
    for _ in range(TIMEOUT + 1):
        await connection.call("presence_stats", channel="a")
        for _ in range(8):
            await clock.advance(INTERVAL / 200)
    assert connection.closes == [NO_PONG]


async def test_pings_of_one_codec_are_one_object(connect: Connect) -> None:
    first, second = await connect(), await connect()
    assert first.client.codec.ping() is second.client.codec.ping()


async def test_client_of_the_first_generation_gets_no_pings(
    second_node: Node, clock: Clock
) -> None:
    connection = Connection(second_node)
    await connection.say(1, 0, token=token())
    await turns()
    before = len(connection.messages)
    for _ in range(400):
        await clock.advance(INTERVAL / 200)
    assert len(connection.messages) == before
    assert connection.closes == []


async def test_client_with_frame_pings_gets_no_others(second_node: Node, clock: Clock) -> None:
    connection = SecondConnection(second_node)
    connection.client.wants_pings = False
    result = await connection.call("connect", token=token())
    for _ in range(400):
        await clock.advance(INTERVAL / 200)
    assert not {"ping", "pong"} & set(result)
    assert connection.pings == 0
    assert connection.closes == []


async def test_frames_have_messages_one_a_line_and_no_empty_one(new: New) -> None:
    frames: list[bytes] = []
    connection = new()

    def send(frame: Frame) -> int:
        frames.append(frame.data)
        return 0

    connection.send = send  # type: ignore[method-assign]

    await connection.frame(
        {"connect": {"token": token()}, "id": 1}, {"subscribe": {"channel": "a"}, "id": 2}
    )
    await turns()

    lines = b"\n".join(frames).split(b"\n")
    assert [json.loads(line).get("id") for line in lines] == [1, 2, None]
