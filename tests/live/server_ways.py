"""The ways in which frames leave: each server, wrapped `send`, TLS."""

from __future__ import annotations

import socket

from tests.server import Server

WAYS = {
    "daphne": {"server": "daphne"},
    "daphne behind middleware": {
        "server": "daphne",
        "application": "tests.site.asgi_wrapped:application",
    },
    "daphne with TLS": {"server": "daphne-tls"},
    "daphne without our protocol": {
        "server": "daphne",
        "application": "tests.site.asgi_plain_daphne:application",
    },
    "python -m realtime": {"server": "realtime"},
    "uvicorn": {"server": "uvicorn"},
    "uvicorn behind middleware": {
        "server": "uvicorn",
        "application": "tests.site.asgi_wrapped:application",
    },
    "granian": {"server": "granian"},
}


def small_socket(server: Server) -> socket.socket:
    """A connection whose receive buffer the kernel does not grow."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    connection.setblocking(False)
    return connection
