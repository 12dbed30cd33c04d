"""How often a password may be tried: per address, and by all addresses together.

Attempts are counted before the password is looked at, so attempts side by side do not get
through, and while there is a limit the answer says nothing about the password. An attempt with
the right one is taken back.
"""

from __future__ import annotations

import math
from ipaddress import IPv6Address, IPv6Network, ip_address

from django.http import HttpRequest

from realtime.config.options import Config

from . import counters

WINDOW = 600
"""Seconds over which attempts are counted; then counting begins anew."""

PER_ADDRESS = 10
OVERALL = 200
"""Attempts in a window. The sum is limited because one attacker can have many addresses."""

IPV6_PREFIX = 64
"""Bits of an IPv6 address that count: one customer has all addresses that share them."""


class Limited(Exception):
    """There were too many attempts."""

    def __init__(self, seconds: int) -> None:
        """`seconds`: how long to wait; at least 1."""
        super().__init__(f"too many attempts, wait {seconds} seconds")
        self.seconds = seconds


def count(address: str, now: float) -> None:
    """Count an attempt.

    Args:
        now: Unix seconds.

    Raises:
        Limited: it must not be made.
    """
    of_address, of_all = _keys(address, now)
    # nothing is kept of further addresses: they would drive out what else is remembered
    if (
        counters.counted(of_all) >= OVERALL
        # what an address may not try does not count for all of them
        or counters.count(of_address, WINDOW) > PER_ADDRESS
        or counters.count(of_all, WINDOW) > OVERALL
    ):
        raise Limited(max(1, math.ceil(WINDOW - now % WINDOW)))


def take_back(address: str, now: float) -> None:
    """Do not count an attempt: the password was right."""
    for key in _keys(address, now):
        counters.take_back(key)


def address_of(request: HttpRequest, config: Config) -> str:
    """Where a request comes from, as far as it counts; "" when the server does not say.

    X-Forwarded-For is believed as far as our own proxies wrote it: each appends the address
    that it was asked from, and what stands before can be written by anybody.
    """
    address: str = request.META.get("REMOTE_ADDR", "")
    proxies = config.admin_trusted_proxies
    if proxies:
        forwarded = request.headers.get("X-Forwarded-For", "").split(",")
        if len(forwarded) >= proxies:
            address = _network_of(forwarded[-proxies].strip()) or address
    return _network_of(address) or address


def _network_of(text: str) -> str:
    """An address as it counts, "" when it is none."""
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
