"""A process that accepts no more: at a port that others have, too, and at its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from realtime.transports.servers.accepting import ACCEPT_AT_ONCE, Acceptor
from realtime.transports.servers.listening import listen_at_path, listen_on_port

LISTENERS: dict[str, Callable[[Path], socket.socket]] = {
    "TCP": lambda directory: listen_on_port("127.0.0.1", 0),
    "Unix": lambda directory: listen_at_path(directory / "socket"),
}


@pytest.mark.parametrize("kind", LISTENERS)
async def test_who_waits_when_the_last_process_closes_its_port_is_accepted(
    tmp_path: Path, kind: str
) -> None:
    listener = LISTENERS[kind](tmp_path)
    accepted: list[int] = []
    acceptor = Acceptor(listener, accepted.append)
    peers = [socket.socket(listener.family) for _ in range(ACCEPT_AT_ONCE + 2)]
    try:
        for peer in peers[1:]:
            peer.connect(listener.getsockname())
        address = listener.getsockname()
        acceptor.finish()
        acceptor.finish()  # again: nothing happens

        assert len(accepted) == len(peers) - 1
        with pytest.raises(ConnectionRefusedError):
            peers[0].connect(address)
    finally:
        for peer in peers:
            peer.close()


async def test_who_waits_is_left_to_others_that_have_the_port() -> None:
    listener = listen_on_port("127.0.0.1", 0)
    with listener.dup() as other, socket.socket() as peer:
        other.setblocking(False)
        accepted: list[int] = []
        acceptor = Acceptor(listener, accepted.append)
        peer.connect(other.getsockname())
        acceptor.close()
        acceptor.finish()
        await asyncio.sleep(0)

        assert accepted == []
        other.accept()[0].close()
