"""Sockets to listen on: whose files they are, and who may connect."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from realtime.transports.servers.accepting import ACCEPT_AT_ONCE, Acceptor
from realtime.transports.servers.listening import (
    CannotListen,
    listen_at_path,
    listen_on_port,
    name_of,
    remove_path,
)


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_socket_has_its_permissions(tmp_path: Path, mode: int) -> None:
    with listen_at_path(tmp_path / "socket", mode):
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == mode


def test_peer_connects_at_the_path(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listen_at_path(path) as listener, socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        accepted, _ = listener.accept()
        accepted.close()
        assert name_of(listener) == f"Unix socket {path}"


def test_file_of_a_process_that_has_ended_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listen_at_path(path).close()
    stale = path.stat().st_ino
    with listen_at_path(path):
        assert path.is_socket()
        assert (path.stat().st_ino, path.stat().st_mtime_ns) != (stale, 0)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))


def test_file_of_a_process_that_listens_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listen_at_path(path) as first:
        with pytest.raises(CannotListen, match="another process listens there"):
            listen_at_path(path)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            first.accept()[0].close()


def test_file_of_a_process_that_listens_and_is_overrun_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as waiting:
        first.bind(str(path))
        first.listen(0)
        waiting.connect(str(path))
        with pytest.raises(CannotListen, match="another process listens there"):
            listen_at_path(path)


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_file_that_is_no_socket_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "precious"
    if kind == "file":
        path.write_text("precious")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CannotListen, match="no socket"):
        listen_at_path(path)

    assert path.is_symlink() or path.exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing/socket", "No such file or directory"), ("x" * 200, "too long")],
)
def test_path_that_cannot_be_is_said(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(CannotListen, match=reason):
        listen_at_path(tmp_path / name)


def test_file_goes_with_its_process_unless_another_one_has_it(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    first = listen_at_path(path)
    remove_path(path, first)
    gone = not path.exists()
    second = listen_at_path(path)
    path.unlink()
    with listen_at_path(path):
        remove_path(path, second)

        assert (gone, path.exists()) == (True, True)


def test_port_in_use_is_said() -> None:
    with listen_on_port("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert name_of(first) == f"TCP address 127.0.0.1:{port}"
        with pytest.raises(CannotListen, match=f"port {port} of 127.0.0.1"):
            listen_on_port("127.0.0.1", port)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70000), ("no.such.host.invalid", 80)])
def test_address_that_does_not_exist_is_said(host: str, port: int) -> None:
    with pytest.raises(CannotListen, match=f"port {port} of {host}"):
        listen_on_port(host, port)


def test_address_of_ipv6_is_in_brackets() -> None:
    with socket.socket(socket.AF_INET6) as listener:
        assert name_of(listener) == "TCP address [::]:0"


# a process that accepts no more


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
