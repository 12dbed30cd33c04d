"""A server that answers as a test says: things that a good server never does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

TIMEOUT = 10.0

Output = Iterator[bytes]
Answer = Callable[[bytes], Output]
"""The head of a request → what the server sends."""


class HostileServer:
    """Answers each connection alike, and keeps it open until the client has gone."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        self.connections = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(TIMEOUT)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += connection.recv(65536)
            for data in self._answer(request):
                connection.sendall(data)
            while connection.recv(65536):
                pass


Serve = Callable[[Answer], HostileServer]
