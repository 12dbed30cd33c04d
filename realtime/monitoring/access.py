"""Who may read the metrics: who has the key, or an address that is allowed."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from realtime.config.options import Config

_FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip")
"""Headers by which a reverse proxy says that a request is of another peer than itself."""


def may_read(config: Config, headers: Mapping[str, str], address: str) -> bool:
    """Return whether a request may read the metrics.

    Args:
        config: the options in force.
        headers: of the request, by lower-case name.
        address: of the client, by `trusted_proxies`; "" if it is not known.
    """
    return _has_key(config.metrics_key, headers) or _is_allowed(config, headers, address)


def _has_key(key: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request has the key: as bearer, or in the header X-API-Key."""
    if not key:
        return False
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    given = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
    # header values are bytes, which servers decode as Latin-1
    return hmac.compare_digest(given.encode("latin-1", "replace"), key.encode())


def _is_allowed(config: Config, headers: Mapping[str, str], address: str) -> bool:
    """Return whether the address of a request is one of `metrics_addresses`.

    Behind a reverse proxy that is not declared, each address is that of the proxy: the request of a
    stranger would have it, too.
    """
    if not config.metrics_addresses or not address:
        return False
    is_known = config.trusted_proxies and "x-forwarded-for" in headers
    if not is_known and any(name in headers for name in _FORWARDED):
        return False
    try:
        peer = ip_address(address)
    except ValueError:
        return False
    if peer.version == 6 and peer.ipv4_mapped is not None:
        peer = peer.ipv4_mapped
    return any(peer in network for network in _networks(config.metrics_addresses))


@lru_cache(maxsize=8)
def _networks(addresses: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(address, strict=False) for address in addresses)
