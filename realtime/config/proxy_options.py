"""The options of proxies: the endpoints of an application elsewhere, by kind.

docs/proxies.md.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from realtime.config.fields import option, seconds

PROXIES = ("connect", "refresh", "subscribe", "publish", "rpc")
"""Kinds of endpoints, as in the names of their options."""

_EMULATED = "Names of headers that clients may send to this URL in their connect request."
_META = "As proxy_include_connection_meta, for this URL alone."
_HEADERS = "Headers of the handshake that this URL gets, and no others; not set: the usual ones."


@dataclass(frozen=True)
class ProxyOptions:
    """Where the service asks, for how long, and what it tells."""

    proxy_connect_endpoint: str = option("", "URL that identifies a client without a token.")
    proxy_refresh_endpoint: str = option("", "URL that decides whether a connection may continue.")
    proxy_subscribe_endpoint: str = option("", "URL that decides in channels with proxy_subscribe.")
    proxy_publish_endpoint: str = option("", "URL that decides in channels with proxy_publish.")
    proxy_rpc_endpoint: str = option("", "URL that answers RPC calls.")
    proxy_connect_timeout: float = seconds(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_refresh_timeout: float = seconds(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_subscribe_timeout: float = seconds(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_publish_timeout: float = seconds(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_rpc_timeout: float = seconds(1.0, "Seconds that this URL may take; 0: no limit.")
    proxy_extra_http_headers: tuple[str, ...] | None = option(
        None, "More headers of the handshake that are forwarded to these URLs."
    )
    proxy_connect_http_headers: tuple[str, ...] | None = option(None, _HEADERS)
    proxy_refresh_http_headers: tuple[str, ...] | None = option(None, _HEADERS)
    proxy_subscribe_http_headers: tuple[str, ...] | None = option(None, _HEADERS)
    proxy_publish_http_headers: tuple[str, ...] | None = option(None, _HEADERS)
    proxy_rpc_http_headers: tuple[str, ...] | None = option(None, _HEADERS)
    proxy_connect_emulated_headers: tuple[str, ...] | None = option(None, _EMULATED)
    proxy_refresh_emulated_headers: tuple[str, ...] | None = option(None, _EMULATED)
    proxy_subscribe_emulated_headers: tuple[str, ...] | None = option(None, _EMULATED)
    proxy_publish_emulated_headers: tuple[str, ...] | None = option(None, _EMULATED)
    proxy_rpc_emulated_headers: tuple[str, ...] | None = option(None, _EMULATED)
    proxy_refresh_include_connection_meta: bool = option(False, _META)
    proxy_subscribe_include_connection_meta: bool = option(False, _META)
    proxy_publish_include_connection_meta: bool = option(False, _META)
    proxy_rpc_include_connection_meta: bool = option(False, _META)
    proxy_include_connection_meta: bool = option(
        False, "Send these URLs the meta of a connection, from its token or the connect endpoint."
    )

    def proxy_endpoint(self, kind: str) -> str:
        """Return the URL of a kind of `PROXIES`; "" if there is none."""
        url: str = getattr(self, f"proxy_{kind}_endpoint")
        return url

    def proxy_headers(self, kind: str) -> tuple[str, ...] | None:
        """Return the only headers that an endpoint gets; None: the usual ones."""
        names: tuple[str, ...] | None = getattr(self, f"proxy_{kind}_http_headers")
        return names

    def emulated_headers(self, kind: str) -> frozenset[str]:
        """Return the names of headers that clients may send to an endpoint, in lower case."""
        names: tuple[str, ...] | None = getattr(self, f"proxy_{kind}_emulated_headers")
        return frozenset(map(str.lower, names or ()))

    def includes_meta(self, kind: str) -> bool:
        """Return whether an endpoint gets the meta of a connection."""
        if self.proxy_include_connection_meta:
            return True
        # a connection that begins has none
        return kind != "connect" and bool(getattr(self, f"proxy_{kind}_include_connection_meta"))

    @property
    def handshake_headers(self) -> tuple[str, ...]:
        """The headers of a handshake that are kept besides the usual ones."""
        lists = (self.proxy_headers(kind) or () for kind in PROXIES)
        return (*(self.proxy_extra_http_headers or ()), *itertools.chain.from_iterable(lists))
