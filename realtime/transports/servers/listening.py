"""Listening sockets that several processes share, on a TCP port or at a path.

A file of a Unix socket outlives its process. So one at which no process answers is replaced, and
one at which a process answers is not. A lock on the directory keeps two processes that start at the
same moment from replacing each other's.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LISTEN_BACKLOG = 1024
"""Connections that may wait to be accepted: clients reconnect all at once."""
UNIX_MODE = 0o660
"""Permissions of a Unix socket: its owner, and its group, of which the reverse proxy is."""

MAX_PORT = 65535


class CannotListen(Exception):
    """The text is a sentence for the operator."""


def listen_on_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a TCP port; 0 for any free one.

    Raises:
        CannotListen: the port is in use, or the host is not one of this machine.
    """
    if not 0 <= port <= MAX_PORT:  # the system would take it modulo 65536
        raise CannotListen(f"cannot listen on port {port} of {host}: there is no such port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with _listening(socket.socket(family, kind, protocol)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except (OSError, UnicodeError) as error:
        raise CannotListen(f"cannot listen on port {port} of {host}: {error}") from None
    return listener


def listen_at_path(path: Path, mode: int = UNIX_MODE) -> socket.socket:
    """Return a socket that listens at a path.

    Args:
        mode: permissions of the file, which it has from its first moment.

    Raises:
        CannotListen: another process listens there, the file is no socket, or the directory cannot
            be used.
    """
    try:
        with _locked(path.parent), _listening(socket.socket(socket.AF_UNIX)) as listener:
            _remove_stale(path)
            mask = os.umask(0o777 & ~mode)
            try:
                listener.bind(str(path))
            finally:
                os.umask(mask)
    except OSError as error:
        raise CannotListen(f"cannot listen at {path}: {error}") from None
    return listener


def remove_path(path: Path, listener: socket.socket) -> None:
    """Remove the file of a socket that listens no more, unless it is another process's by now."""
    listener.close()
    with suppress(OSError), _locked(path.parent):  # a stale one is replaced later
        if not _answers(path):
            path.unlink()


def name_of(listener: socket.socket) -> str:
    """Return where a socket listens, for people."""
    address = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"Unix socket {address}"
    host, port = address[:2]
    return f"TCP address [{host}]:{port}" if ":" in host else f"TCP address {host}:{port}"


@contextmanager
def _listening(listener: socket.socket) -> Iterator[socket.socket]:
    """Bind the socket in this block. It listens from the end on, or is closed after a failure."""
    try:
        yield listener
        listener.listen(LISTEN_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_stale(path: Path) -> None:
    """Remove the file of a socket at which no process listens.

    Raises:
        CannotListen: a process listens there, or the file is no socket.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise CannotListen(f"cannot listen at {path}: there is a file that is no socket")
    if _answers(path):
        raise CannotListen(f"cannot listen at {path}: another process listens there")
    path.unlink()


def _answers(path: Path) -> bool:
    """Return whether a process listens at a path.

    Raises:
        OSError: that cannot be found out, for example for want of permission.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.setblocking(False)
        try:
            peer.connect(str(path))
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            return True  # so many wait that there is no room for another one
    return True
