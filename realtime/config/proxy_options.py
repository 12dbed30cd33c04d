"""The options of proxies: the endpoints of an application elsewhere, by kind.

docs/proxies.md.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from realtime.config.fields import option, seconds

PROXIES = ("connect", "refresh", "subscribe", "publish", "rpc")
"""Kinds of endpoints, as in the names of their options."""

_HEADERS = "Headers of the handshake that this URL gets, and no others; not set: the usual ones."


@dataclass(frozen=True, slots=True)
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

    @property
    def handshake_headers(self) -> tuple[str, ...]:
        """The headers of a handshake that are kept besides the usual ones."""
        lists = (self.proxy_headers(kind) or () for kind in PROXIES)
        return (*(self.proxy_extra_http_headers or ()), *itertools.chain.from_iterable(lists))
