"""daphne's HTTP requests, WebSocket handshakes included, without what clients must not decide.

Imported by `servers.daphne` only if daphne is loaded. daphne takes the path at which the site is
mounted from the header Daphne-Root-Path of any request. A client could so reach our paths past the
rules that a reverse proxy has for them.
"""

from __future__ import annotations

from typing import Any

from daphne.http_protocol import WebRequest

from realtime.config.reader import InvalidOptions
from realtime.serving import serving

ROOT_PATH = b"daphne-root-path"


class GuardedRequest(WebRequest):  # type: ignore[misc]  # daphne has no types
    """Every HTTP request of the site. For applications it behaves like daphne's own."""

    def process(self) -> Any:
        """Run the application, or open a WebSocket, as daphne does."""
        if self.requestHeaders.hasHeader(ROOT_PATH) and not _proxy_sets_root_path():
            self.requestHeaders.removeHeader(ROOT_PATH)
        return super().process()


def _proxy_sets_root_path() -> bool:
    try:
        return serving.config().proxy_sets_root_path
    except InvalidOptions:
        return False
