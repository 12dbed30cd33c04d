"""The options of proxies: the endpoints of an application elsewhere, by kind.

docs/proxies.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from realtime.config.fields import option, seconds

PROXIES = ("connect", "refresh", "subscribe", "publish", "rpc")
"""Kinds of endpoints, as in the names of their options: `proxy_connect_endpoint`."""


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Where the service asks about events of one kind, for how long, and what it tells."""

    endpoint: str = option(
        "",
        "URL that is asked: connect identifies a client without a token, refresh decides whether a"
        " connection may continue, subscribe and publish decide in channels with proxy_subscribe"
        " and proxy_publish, and rpc answers calls.",
    )
    timeout: float = seconds(1.0, "Seconds that this URL may take; 0: no limit.")
    http_headers: tuple[str, ...] | None = option(
        None, "Headers of the handshake that this URL gets, and no others; not set: the usual ones."
    )
    emulated_headers: tuple[str, ...] | None = option(
        None, "Names of headers that clients may send to this URL in their connect request."
    )
    include_connection_meta: bool = option(
        False, "As proxy_include_connection_meta, for this URL alone. Not for connect."
    )
