"""Bounds of an outbox, busy transports, and the end."""

from __future__ import annotations

import pytest

from realtime.node.outbox import Flusher
from tests.unit.node.outbox_parts import Peer
from tests.unit.parts import turns

WORDS = [b"one\n", b"two\n", b"three\n"]


# bounds


@pytest.mark.parametrize(("last", "overflows"), [(b"cd", 0), (b"cde", 1)])
async def test_one_byte_past_the_bound_is_an_overflow_and_drops_what_waits(
    flusher: Flusher, last: bytes, overflows: int
) -> None:
    peer = Peer(flusher, limit_bytes=4)
    peer.outbox.append(b"ab")
    peer.outbox.append(last)
    await turns()
    assert peer.overflows == overflows
    assert peer.transport.data == ([] if overflows else [b"abcd"])


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


async def test_reserved_room_comes_on_top_of_the_limit_until_it_has_left(flusher: Flusher) -> None:
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
