"""ClientOutbox and flusher: one frame a turn, shared frames."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.node.outbox import ClientOutbox, Flusher, MessageBatch
from realtime.protocol.frames import Frame
from tests.unit.node.outbox_parts import Peer, RecordingTransport
from tests.unit.parts import quickly, turns

WORDS = [b"one\n", b"two\n", b"three\n"]


def batches() -> int:
    """How many batches there are in this process."""
    return sum(type(thing) is MessageBatch for thing in gc.get_objects())


async def test_messages_of_one_turn_leave_in_one_frame_in_order(flusher: Flusher) -> None:
    peer = Peer(flusher)
    for message in (b"a\n", b"b\n", b"c\n"):
        peer.outbox.append(message)
    await turns()
    assert peer.transport.data == [b"a\nb\nc\n"]


async def test_separator_stands_between_messages_and_nowhere_else(flusher: Flusher) -> None:
    peer = Peer(flusher, separator=b"\n")
    for messages in ([b"a"], [b"b", b"c", b"d"]):
        for message in messages:
            peer.outbox.append(message)
        await turns()
    assert peer.transport.data == [b"a", b"b\nc\nd"]


async def test_messages_of_two_turns_leave_in_two_frames(flusher: Flusher) -> None:
    peer = Peer(flusher)
    peer.outbox.append(b"a\n")
    assert peer.transport.frames == []
    await turns(1)
    assert peer.transport.data == [b"a\n"]
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


async def test_message_that_comes_while_flushing_leaves_in_the_next_turn(flusher: Flusher) -> None:
    peer = Peer(flusher)

    class Answering(RecordingTransport):
        def send(self, frame: Frame) -> int:
            peer.outbox.append(b"answer\n")
            return super().send(frame)

    asking = Answering()
    outbox = ClientOutbox(asking, flusher, binary=False, limit_bytes=0, overflow=lambda slow: None)
    outbox.append(b"a\n")
    await turns()
    assert peer.transport.data == [b"answer\n"]
