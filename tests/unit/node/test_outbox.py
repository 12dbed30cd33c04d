"""Outbox and flusher: one frame a turn, shared frames, bounds, busy transports."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import Disconnect
from realtime.node.outbox import Batch, Flusher, Outbox
from realtime.protocol.frames import Frame
from tests.unit.parts import quickly, turns

WORDS = [b"one\n", b"two\n", b"three\n"]


def batches() -> int:
    """How many batches there are in this process."""
    return sum(type(thing) is Batch for thing in gc.get_objects())


class RecordingTransport:
    """A transport that keeps its frames; `buffered` is what its server has not sent."""

    name = "websocket"

    def __init__(self) -> None:
        self.ready = True
        self.buffered = 0
        self.takes = 0
        """Frames after which it is not ready; 0: it always is."""
        self.frames: list[Frame] = []

    @property
    def backlog(self) -> int:
        return self.buffered

    def send(self, frame: Frame) -> int:
        self.frames.append(frame)
        self.ready = len(self.frames) != self.takes
        return self.buffered

    async def close(self, disconnect: Disconnect) -> None:
        pass

    def closed(self) -> None:
        pass

    @property
    def data(self) -> list[bytes]:
        return [frame.data for frame in self.frames]


class Peer:
    """A transport with its outbox."""

    def __init__(self, flusher: Flusher, *, binary: bool = False, limit_bytes: int = 100) -> None:
        self.transport = RecordingTransport()
        self.overflows = 0
        self.outbox = Outbox(
            self.transport,
            flusher,
            binary=binary,
            limit_bytes=limit_bytes,
            overflow=self._overflow,
        )

    def _overflow(self) -> None:
        self.overflows += 1


@pytest.fixture
async def flusher() -> Flusher:
    return Flusher(asyncio.get_running_loop())


async def test_message_leaves_within_the_turn_it_came_in(flusher: Flusher) -> None:
    peer = Peer(flusher)

    peer.outbox.append(b"a\n")
    assert peer.transport.frames == []
    await turns(1)

    assert peer.transport.data == [b"a\n"]


async def test_messages_of_one_turn_leave_in_one_frame_in_order(flusher: Flusher) -> None:
    peer = Peer(flusher)

    for message in (b"a\n", b"b\n", b"c\n"):
        peer.outbox.append(message)
    await turns()

    assert peer.transport.data == [b"a\nb\nc\n"]


async def test_messages_of_two_turns_leave_in_two_frames(flusher: Flusher) -> None:
    peer = Peer(flusher)

    peer.outbox.append(b"a\n")
    await turns()
    peer.outbox.append(b"b\n")
    await turns()

    assert peer.transport.data == [b"a\n", b"b\n"]


@pytest.mark.parametrize("messages", [[b"a\n"], [b"a\n", b"b\n"]], ids=["one", "two"])
async def test_clients_with_the_same_messages_share_one_frame(
    flusher: Flusher, messages: list[bytes]
) -> None:
    peers = [Peer(flusher) for _ in range(3)]

    for message in messages:
        for peer in peers:
            peer.outbox.append(message)
    await turns()

    first, *others = [peer.transport.frames for peer in peers]
    assert [frame.data for frame in first] == [b"".join(messages)]
    assert all(frames[0] is first[0] for frames in others)


async def test_clients_with_different_messages_get_their_own(flusher: Flusher) -> None:
    first, second, third = Peer(flusher), Peer(flusher), Peer(flusher)

    first.outbox.append(b"a\n")
    second.outbox.append(b"b\n")
    third.outbox.append(b"a\n")
    third.outbox.append(b"b\n")
    await turns()

    assert [peer.transport.data for peer in (first, second, third)] == [
        [b"a\n"],
        [b"b\n"],
        [b"a\nb\n"],
    ]


async def test_frames_are_not_shared_between_text_and_binary(flusher: Flusher) -> None:
    peers = [Peer(flusher, binary=binary) for binary in (False, True, False)]

    for peer in peers:
        # codecs never give each other's messages, so these are equal and not the same
        peer.outbox.append(bytes(bytearray(b"ab")))
    await turns()

    frames = [peer.transport.frames[0] for peer in peers]
    assert [(frame.data, frame.binary) for frame in frames] == [
        (b"ab", False),
        (b"ab", True),
        (b"ab", False),
    ]


@quickly
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(WORDS)), max_size=30))
async def test_every_client_gets_its_messages_whatever_the_others_get(
    appends: list[tuple[int, bytes]],
) -> None:
    flusher = Flusher(asyncio.get_running_loop())
    peers = [Peer(flusher, limit_bytes=0) for _ in range(4)]

    for index, word in appends:
        peers[index].outbox.append(word)
    await turns()

    for index, peer in enumerate(peers):
        expected = b"".join(word for other, word in appends if other == index)
        assert peer.transport.data == ([expected] if expected else [])


async def test_what_was_sent_leaves_nothing_to_the_garbage_collector(flusher: Flusher) -> None:
    peers = [Peer(flusher) for _ in range(3)]
    gc.collect()
    gc.disable()
    try:
        before = batches()
        for word in WORDS:
            for peer in peers:
                peer.outbox.append(word)
        assert batches() > before
        await turns()
        for peer in peers:
            peer.transport.frames.clear()
        assert batches() == before
    finally:
        gc.enable()


async def test_message_that_comes_while_flushing_leaves_in_the_next_turn(
    flusher: Flusher,
) -> None:
    peer = Peer(flusher)

    class Answering(RecordingTransport):
        def send(self, frame: Frame) -> int:
            peer.outbox.append(b"answer\n")
            return super().send(frame)

    asking = Answering()
    outbox = Outbox(asking, flusher, binary=False, limit_bytes=0, overflow=lambda: None)
    outbox.append(b"a\n")
    await turns()

    assert peer.transport.data == [b"answer\n"]


# bounds


async def test_bound_itself_is_not_an_overflow(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=4)

    peer.outbox.append(b"ab")
    peer.outbox.append(b"cd")
    await turns()

    assert peer.overflows == 0
    assert peer.transport.data == [b"abcd"]


async def test_one_byte_past_the_bound_is_an_overflow_and_drops_what_waits(
    flusher: Flusher,
) -> None:
    peer = Peer(flusher, limit_bytes=4)

    peer.outbox.append(b"abcd")
    peer.outbox.append(b"e")
    await turns()

    assert peer.overflows == 1
    assert peer.transport.frames == []


async def test_nothing_follows_what_was_dropped(flusher: Flusher) -> None:
    """A client that got a later publication would never ask for those before it."""
    peer = Peer(flusher, limit_bytes=3)
    peer.transport.ready = False
    peer.outbox.append(b"dropped\n")

    peer.transport.ready = True
    peer.outbox.append(b"x\n")
    peer.outbox.ready()
    await turns()

    assert peer.transport.data == []


async def test_bytes_that_have_left_do_not_count(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=4)

    for _ in range(5):
        peer.outbox.append(b"abcd")
        await turns()

    assert peer.overflows == 0


async def test_bound_of_0_is_none(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=0)
    peer.transport.buffered = 10**9

    peer.outbox.append(b"a" * 1_000_000)
    await turns()

    assert peer.overflows == 0
    assert len(peer.transport.frames) == 1


async def test_bytes_the_server_still_buffers_count(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=4)
    peer.transport.buffered = 4
    peer.outbox.append(b"a")
    await turns()
    assert peer.overflows == 0

    peer.transport.buffered = 5
    peer.outbox.append(b"a")
    await turns()

    assert peer.overflows == 1


# busy transports


async def test_messages_stay_while_the_transport_is_busy(flusher: Flusher) -> None:
    peer = Peer(flusher)
    peer.transport.ready = False

    peer.outbox.append(b"a\n")
    await turns()
    peer.outbox.append(b"b\n")
    await turns()
    assert peer.transport.frames == []

    peer.transport.ready = True
    peer.outbox.ready()
    await turns()
    assert peer.transport.data == [b"a\nb\n"]


async def test_bound_holds_while_the_transport_is_busy(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=4)
    peer.transport.ready = False

    for _ in range(5):
        peer.outbox.append(b"a")
        await turns()

    assert peer.overflows == 1


async def test_other_clients_do_not_wait_for_a_busy_transport(flusher: Flusher) -> None:
    busy, other = Peer(flusher), Peer(flusher)
    busy.transport.ready = False

    for peer in (busy, other):
        peer.outbox.append(b"a\n")
    await turns()

    assert other.transport.data == [b"a\n"]


async def test_being_ready_with_nothing_to_send_sends_nothing(flusher: Flusher) -> None:
    peer = Peer(flusher)

    peer.outbox.ready()
    await turns()

    assert peer.transport.frames == []


async def test_message_and_readiness_in_one_turn_send_once(flusher: Flusher) -> None:
    peer = Peer(flusher)
    peer.transport.ready = False
    peer.outbox.append(b"a\n")
    await turns()

    peer.transport.ready = True
    peer.outbox.ready()
    peer.outbox.append(b"b\n")
    await turns()

    assert peer.transport.data == [b"a\nb\n"]


# the end


async def test_flush_at_the_end_sends_what_waits_at_once(flusher: Flusher) -> None:
    peer = Peer(flusher)
    peer.outbox.append(b"a\n")

    peer.outbox.flush()
    assert peer.transport.data == [b"a\n"]
    await turns()

    assert peer.transport.data == [b"a\n"]


async def test_closed_outbox_sends_nothing_and_overflows_no_more(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=4)
    peer.outbox.append(b"a\n")

    peer.outbox.close()
    await turns()
    assert peer.transport.frames == []

    peer.outbox.append(b"abcde")
    await turns()
    assert (peer.overflows, peer.transport.frames) == (0, [])


async def test_what_the_server_holds_counts_while_it_takes_no_more(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=10)
    peer.transport.buffered, peer.transport.takes = 8, 1
    peer.outbox.append(b"a\n")
    await turns()

    peer.outbox.append(b"b\n")
    await turns()
    assert peer.overflows == 0
    peer.outbox.append(b"c")
    assert peer.overflows == 1


async def test_what_the_server_has_sent_counts_no_more(flusher: Flusher) -> None:
    peer = Peer(flusher, limit_bytes=10)
    peer.transport.buffered, peer.transport.takes = 8, 1
    peer.outbox.append(b"a\n")
    await turns()
    peer.transport.buffered, peer.transport.ready = 0, True
    peer.outbox.ready()

    peer.outbox.append(b"123456789\n")
    await turns()

    assert peer.overflows == 0
    assert peer.transport.data == [b"a\n", b"123456789\n"]


async def test_reserved_room_comes_on_top_of_the_limit_until_it_has_left(
    flusher: Flusher,
) -> None:
    peer = Peer(flusher, limit_bytes=10)

    assert peer.outbox.reserve(20, 20)
    assert not peer.outbox.reserve(1, 20)
    peer.outbox.append(b"r" * 20)
    peer.transport.buffered = 20
    await turns()
    peer.transport.buffered = 10
    peer.outbox.append(b"a" * 10)
    await turns()
    assert peer.overflows == 0

    peer.transport.buffered = 21
    peer.outbox.append(b"b")
    await turns()
    assert peer.overflows == 1
