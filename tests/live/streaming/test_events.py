"""Channels by their address: what a listener gets, and from where it goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from realtime.protocol import event_ids
from realtime.protocol.messages import StreamPosition
from tests.live.server_ways import WAYS
from tests.live.streaming.listeners import LISTENERS, Event, address, listening
from tests.server import Server


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**LISTENERS)


# what comes


@pytest.mark.parametrize("way", ["daphne", "daphne behind middleware", "uvicorn", "granian"])
async def test_listener_of_one_channel_gets_payloads_and_positions(
    own_server: Callable[..., Server], way: str, unique: str
) -> None:
    server = own_server(**WAYS[way], **LISTENERS)
    channel = f"long:{unique}"
    async with listening(server, address(channel)) as listener:
        wait = (await listener.block()).retry or ""
        await listener.begun()
        begin = listener.id
        for number in range(3):
            await asyncio.to_thread(server.publish, channel, {"number": number})

        events = [await listener.event() for _ in range(3)]
        stopping = asyncio.create_task(asyncio.to_thread(server.terminate))
        rest = await listener.rest()
        await stopping

    headers = listener.exchange.headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-content-type-options"] == "nosniff"
    assert "no-store" in headers["cache-control"]
    assert "content-encoding" not in headers
    assert 1000 <= int(wait) <= 3000
    assert [(event.name, event.data) for event in events] == [
        ("", f'{{"number":{number}}}') for number in range(3)
    ]
    (epoch,) = {position.epoch for position in positions(begin, channel)}
    assert [event.id for event in events] == [
        event_ids.encode({channel: StreamPosition(offset, epoch)}) for offset in (1, 2, 3)
    ]
    assert [event._replace(retry=None) for event in rest] == [Event()]
    assert 500 <= int(rest[0].retry or "") <= 5000


def positions(event_id: str, *channels: str) -> list[StreamPosition]:
    """The positions in an ID."""
    found = event_ids.decode(event_id, channels).values()
    return [position for position in found if position is not None]


async def test_events_of_several_channels_have_their_names(server: Server, unique: str) -> None:
    one, other, unkept = f"long:{unique}", f"long:{unique}-2", f"ns:{unique}"
    async with listening(server, address(one, other, unkept)) as listener:
        await listener.begun()
        for channel in (one, other, unkept, one):
            await asyncio.to_thread(server.publish, channel, channel)

        events = [await listener.event() for _ in range(4)]

    assert [(event.name, json.loads(event.data or "")) for event in events] == [
        (channel, channel) for channel in (one, other, unkept, one)
    ]
    offsets = [
        [position.offset for position in positions(event.id, one, other)]
        for event in events
        if event.id is not None
    ]
    assert offsets == [[1, 0], [1, 1], [2, 1]]


@pytest.mark.parametrize(
    ("payload", "data"),
    [
        ("<p>é &amp; \u2028</p>", "<p>é &amp; \u2028</p>"),
        ("a\nb\r\nc\rd", "a\nb\nc\nd"),
        ("", ""),
        ("\n\nid: 5\n\nevent: reset", "\n\nid: 5\n\nevent: reset"),
        ({"a": "b\nc"}, '{"a":"b\\nc"}'),
        (5, "5"),
        (None, "null"),
    ],
)
async def test_text_comes_as_text(server: Server, unique: str, payload: Any, data: str) -> None:
    channel = f"long:{unique}"
    async with listening(server, address(channel, format="text")) as listener:
        await listener.begun()
        server.publish(channel, payload)
        assert (await listener.event())[:2] == ("", data)


async def test_comments_keep_a_quiet_stream_open(serve: Callable[..., Server], unique: str) -> None:
    server = serve(**LISTENERS, ping_interval=1, pong_timeout=0.9)
    async with listening(server, address(f"ns:{unique}")) as listener:
        for _ in range(2):
            await listener.exchange.read_until(b"\n:\n\n")


# where it goes on


@pytest.mark.parametrize("way", ["Last-Event-ID", "since"])
async def test_missed_publications_come_first(server: Server, unique: str, way: str) -> None:
    one, other = f"long:{unique}", f"long:{unique}-2"
    server.publish(one, 1)
    async with listening(server, address(one, other)) as listener:
        await listener.begun()
    for number in range(2, 5):
        server.publish(one, number)
        server.publish(other, -number)

    since = {"since": listener.id} if way == "since" else {}
    headers = {} if since else {"Last-Event-ID": listener.id}
    async with listening(server, address(one, other, **since), headers) as listener:
        events = [await listener.event() for _ in range(6)]
        ids = [event.id for event in events]
        await asyncio.to_thread(server.publish, other, 0)
        last = await listener.event()

    assert [(event.name, event.data) for event in events] == [
        *((one, f"{number}") for number in range(2, 5)),
        *((other, f"{-number}") for number in range(2, 5)),
    ]
    assert [[each.offset for each in positions(each or "", one, other)] for each in ids] == [
        [2, 0], [3, 0], [4, 0], [4, 1], [4, 2], [4, 3],
    ]  # fmt: skip
    assert (last.name, last.data) == (other, "0")


async def test_what_cannot_be_recovered_is_reset(server: Server, unique: str) -> None:
    whole, gone, fresh = (f"long:{unique}-{number}" for number in range(3))
    async with listening(server, address(whole)) as listener:
        await listener.begun()
        (position,) = positions(listener.id, whole)
    known = {whole: position, gone: StreamPosition(3, "other"), "elsewhere": position}
    server.publish(whole, "missed")

    since = event_ids.encode(known)
    async with listening(server, address(whole, gone, fresh, since=since)) as listener:
        reset = await listener.event()
        missed = await listener.event()
        await asyncio.to_thread(server.publish, gone, "live")
        live = await listener.event()

    assert (reset.name, json.loads(reset.data or "")) == ("reset", {"channels": [gone]})
    assert (missed.name, missed.data) == (whole, '"missed"')
    assert [each.offset for each in positions(live.id or "", whole, gone, fresh)] == [1, 1, 0]
