"""Limit how often a password may be tried: by each address, and by all addresses together.

An attempt is counted before the password is compared, so parallel attempts do not get through,
and during a limit the answer says nothing about the password. An attempt with the right
password is taken back.
"""

from __future__ import annotations

import math
from ipaddress import IPv6Address, IPv6Network, ip_address

from django.http import HttpRequest

from realtime.config.options import Config

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

    Some servers put an entry of X-Forwarded-For in place of the address: uvicorn does for every
    peer on the same host. A client may have written it, so such clients count as one.

    Of X-Forwarded-For only the entries of our own proxies are trusted: each appends the
    address of its client, and everything before can be written by that client.
    """
    address: str = request.META.get("REMOTE_ADDR", "")
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    proxies = config.admin_trusted_proxies
    if proxies and len(forwarded) >= proxies and (trusted := _network_of(forwarded[-proxies])):
        return trusted
    if any(_names(part, address) for part in forwarded):
        return ""
    return _network_of(address) or address


def _names(part: str, address: str) -> bool:
    """Return whether a part of X-Forwarded-For is this address, with or without a port."""
    return address in (part, part.strip("[]"), part.rpartition(":")[0].strip("[]"))


def _network_of(text: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 address; "" for other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        # the network drops a scope, which is not part of the address
        return str(IPv6Network((int(address), IPV6_PREFIX), strict=False).network_address)
    return str(address)


def _keys(address: str, now: float) -> tuple[str, str]:
    window = int(now // WINDOW)
    return f"attempts:{window}:from:{address}", f"attempts:{window}:all"
