"""The addresses of clients: in the log, and for rates of addresses."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.transports.handshake import address_of

PEER = ("192.0.2.1", 50000)
SPOOFED = "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "expected"),
    [
        (PEER, [], 0, "192.0.2.1"),
        (PEER, [SPOOFED], 0, "192.0.2.1"),
        (PEER, ["198.51.100.7"], 1, "198.51.100.7"),
        (PEER, [SPOOFED, "198.51.100.7"], 1, "198.51.100.7"),
        (PEER, [f"{SPOOFED}, 198.51.100.7", "10.0.0.1"], 2, "198.51.100.7"),
        (PEER, [], 1, "192.0.2.1"),
        (PEER, ["fe80::1%any text"], 1, "fe80::1"),
        # some proxies write the port, too
        (PEER, ["198.51.100.7:50000"], 1, "198.51.100.7"),
        (PEER, ["[2001:db8::7]:50000"], 1, "2001:db8::7"),
        (PEER, ["[2001:db8::7]"], 1, "2001:db8::7"),
        # the address of the proxy is not that of the client
        (PEER, [SPOOFED], 2, ""),
        (PEER, ["no address"], 1, ""),
        (PEER, ["unknown"], 1, ""),
        (("::ffff:192.0.2.1", 1), [], 0, "192.0.2.1"),
        # the server has put it in place of the peer's address
        ((SPOOFED, 0), [SPOOFED], 0, ""),
        (("any text", 0), ["any text"], 0, ""),
        # daphne reads the header as UTF-8, this service as Latin-1
        (("é", 0), ["é"], 0, ""),
        (("unix:", 0), [], 0, ""),
        (None, [], 0, ""),
    ],
)
def test_address(
    peer: tuple[str, int] | None, forwarded: list[str], proxies: int, expected: str
) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope: dict[str, Any] = {"type": "websocket", "client": peer, "headers": headers}
    assert address_of(scope, proxies) == expected
