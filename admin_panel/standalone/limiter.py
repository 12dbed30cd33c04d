"""Limit how often a password may be tried: by each address, and by all addresses together.

An attempt is counted before the password is compared, so parallel attempts do not get through,
and during a limit the answer says nothing about the password. An attempt with the right
password is taken back.
"""

from __future__ import annotations

import math
from ipaddress import IPv6Network

from django.http import HttpRequest

from realtime.config.options import Config
from realtime.transports.handshake import client_address

from . import counters

WINDOW = 600
"""Seconds in which attempts are counted together; each window begins at 0."""

PER_ADDRESS = 10
OVERALL = 200
"""Attempts in a window. The total is limited because one attacker can have many addresses."""

IPV6_PREFIX = 64
"""Bits of an IPv6 address that are compared: one customer has all addresses that share them."""


class Limited(Exception):
    """There were too many attempts."""

    def __init__(self, seconds: int) -> None:
        """
        Args:
            seconds: until the next attempt is allowed, at least 1.
        """
        super().__init__(f"too many attempts, wait {seconds} seconds")
        self.seconds = seconds


def count(address: str, now: float) -> None:
    """Count an attempt.

    Args:
        address: where it comes from, as `address_of` returns it.
        now: Unix seconds.

    Raises:
        Limited: the address, or all of them together, made too many attempts in this window.
    """
    of_address, of_all = _keys(address, now)
    if (
        # beyond the total nothing is stored: more addresses would push other entries out
        counters.counted(of_all) >= OVERALL
        # a refused attempt does not count for the total
        or counters.count(of_address, WINDOW) > PER_ADDRESS
        or counters.count(of_all, WINDOW) > OVERALL
    ):
        raise Limited(max(1, math.ceil(WINDOW - now % WINDOW)))


def take_back(address: str, now: float) -> None:
    """Uncount an attempt whose password was right."""
    for key in _keys(address, now):
        counters.take_back(key)


def address_of(request: HttpRequest, config: Config) -> str:
    """Return the address or IPv6 network of a client; "" if it is not known.

    Clients whose address is not known count as one; see `client_address`.
    """
    address = client_address(
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("X-Forwarded-For", ""),
        config.trusted_proxies,
    )
    try:
        network = IPv6Network((address, IPV6_PREFIX), strict=False)
    except ValueError:  # IPv4, or not an address
        return address
    return str(network.network_address)


def _keys(address: str, now: float) -> tuple[str, str]:
    window = int(now // WINDOW)
    return f"attempts:{window}:from:{address}", f"attempts:{window}:all"
