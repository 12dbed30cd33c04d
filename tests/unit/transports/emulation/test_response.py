"""The response to a request as a receiver: which frames reach the server, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.transports.asgi import Exchange
from realtime.transports.emulation.response import ResponseFormat, SessionResponse
from realtime.transports.sockjs.formats import EVENTSOURCE, XHR, XHR_STREAMING, htmlfile, jsonp
from tests.unit.parts import eventually, turns
from tests.unit.transports.emulation.parts import STREAMING_BYTES

HEADERS = [(b"cache-control", b"no-store")]
POLLING = {"xhr": XHR, "jsonp": jsonp("cb")}
STREAMING = {
    "xhr_streaming": XHR_STREAMING,
    "eventsource": EVENTSOURCE,
    "htmlfile": htmlfile("cb"),
}
streaming = pytest.mark.parametrize("transport", STREAMING.values(), ids=STREAMING.keys())
each_kind = pytest.mark.parametrize("transport", [XHR, XHR_STREAMING], ids=["polling", "streaming"])


class Peer:
    """A server with one request: the events that it sends, and those of the client."""

    def __init__(self, transport: ResponseFormat) -> None:
        self.arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.events: list[Mapping[str, Any]] = []
        self.reads = asyncio.Event()
        """While it is not set, sending waits."""
        self.reads.set()
        self.error: Exception | None = None
        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        self.response = SessionResponse(
            Exchange(scope, self.arriving.get, self._send), transport, HEADERS
        )
        self.running = asyncio.create_task(self.response.run())

    async def _send(self, event: Mapping[str, Any]) -> None:
        await self.reads.wait()
        if self.error is not None:
            raise self.error
        self.events.append(event)

    def leave(self) -> None:
        self.arriving.put_nowait({"type": "http.disconnect"})

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.events)

    @property
    def has_ended(self) -> bool:
        """Whether the response has ended for the server."""
        return any("body" in event and "more_body" not in event for event in self.events)

    async def good_end(self) -> bool:
        """Wait for the end of the response; return the result of `run`."""
        await eventually(self.running.done)
        return await self.running


async def nothing_is_left() -> None:
    """Wait until no other task runs."""
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})


# polling


@pytest.mark.parametrize("transport", POLLING.values(), ids=POLLING.keys())
@pytest.mark.parametrize("runs", [True, False], ids=["while it waits", "before it runs"])
async def test_polling_response_begins_with_the_first_frame_and_has_it_alone(
    transport: ResponseFormat, runs: bool
) -> None:
    peer = Peer(transport)
    if runs:
        await turns()
        assert peer.events == []
    peer.response.write(b"o")

    assert peer.response.finishing
    assert await peer.good_end()
    assert peer.body == transport.wrap(b"o")
    headers = dict(peer.events[0]["headers"])
    assert headers[b"content-length"] == b"%d" % len(peer.body)
    assert headers[b"cache-control"] == b"no-store"
    await nothing_is_left()


async def test_polling_response_may_end_without_a_frame() -> None:
    peer = Peer(XHR)
    peer.response.finish()
    assert await peer.good_end()
    assert (peer.events[0]["status"], peer.body) == (200, b"")


# streaming


@streaming
async def test_streaming_response_has_its_prelude_at_once_and_each_frame_as_it_comes(
    transport: ResponseFormat,
) -> None:
    peer = Peer(transport)
    await eventually(lambda: len(peer.events) == 2)
    assert peer.body == transport.prelude
    expected = transport.prelude
    # the rest of the request is ignored
    peer.arriving.put_nowait({"type": "http.request", "body": b"x", "more_body": True})

    for frame in (b"o", b'a["x"]', b"h"):
        peer.response.write(frame)
        expected += transport.wrap(frame)
        await eventually(lambda expected=expected: peer.body == expected)  # type: ignore[misc]

    assert not peer.response.finishing
    assert await peer.response.is_there()
    peer.response.finish()
    assert await peer.good_end()
    assert peer.has_ended
    assert peer.body == expected
    await nothing_is_left()


@streaming
async def test_streaming_response_ends_in_order_when_it_is_large(
    transport: ResponseFormat,
) -> None:
    peer = Peer(transport)
    frame = b'a["%s"]' % (b"x" * 1000)
    written = 0
    while not peer.response.finishing:
        peer.response.write(frame)
        written += 1
        await turns(2)

    assert written == -(-STREAMING_BYTES // len(frame))
    assert await peer.good_end()
    assert peer.body == transport.prelude + written * transport.wrap(frame)


async def test_last_frame_may_be_larger_than_the_limit() -> None:
    peer = Peer(XHR_STREAMING)
    frame = b'a["%s"]' % (b"x" * (3 * STREAMING_BYTES))
    peer.response.write(frame)
    assert await peer.good_end()
    assert peer.body == XHR_STREAMING.prelude + frame + b"\n"


async def test_frames_that_come_while_the_server_waits_leave_together_and_in_order() -> None:
    peer = Peer(XHR_STREAMING)
    await eventually(lambda: len(peer.events) == 2)
    peer.reads.clear()
    peer.response.write(b"f0")
    await turns()

    for number in range(1, 50):
        peer.response.write(b"f%d" % number)
        await turns(1)
    peer.reads.set()
    await eventually(lambda: peer.body.endswith(b"f49\n"))

    assert [event["body"] for event in peer.events[2:]] == [
        b"f0\n",
        b"".join(b"f%d\n" % number for number in range(1, 50)),
    ]
    for last in (b"f50", b"f51"):
        peer.response.write(last)
    peer.response.finish()
    assert await peer.good_end()
    assert peer.body.endswith(b"f50\nf51\n")


# lost connections


@each_kind
@pytest.mark.parametrize("frames", [(), (b"o",)], ids=["no frame", "a frame that is not sent"])
async def test_response_whose_peer_goes_is_not_a_good_end(
    transport: ResponseFormat, frames: tuple[bytes, ...]
) -> None:
    peer = Peer(transport)
    await turns()
    peer.leave()
    for frame in frames:
        peer.response.write(frame)
    assert not await peer.good_end()
    assert not peer.has_ended


@each_kind
async def test_error_of_the_server_is_raised_and_nothing_goes_on(
    transport: ResponseFormat,
) -> None:
    peer = Peer(transport)
    peer.error = OSError("the server has no socket any more")
    peer.response.write(b"o")
    peer.response.finish()
    with pytest.raises(OSError, match="no socket"):
        await peer.good_end()
    await nothing_is_left()


@each_kind
async def test_response_that_is_cancelled_leaves_nothing_behind(
    transport: ResponseFormat,
) -> None:
    peer = Peer(transport)
    await turns()
    peer.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await peer.running
    await nothing_is_left()
