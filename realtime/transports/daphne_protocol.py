"""daphne's WebSocket protocol with close reasons and a visible backlog.

Imported by `transports.daphne` only when daphne is there.
"""

from __future__ import annotations

from typing import Any

from daphne.ws_protocol import WebSocketProtocol

from realtime.errors import CLOSE_REASON_MAX_BYTES

NORMAL_CLOSURE = 1000


class AdvisingProtocol(WebSocketProtocol):  # type: ignore[misc]
    """Serves every WebSocket of the site; differs from daphne's own in closing only."""

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Do what the application sent, as daphne does, but close with the reason given."""
        if message.get("type") == "websocket.close" and self.state == self.STATE_OPEN:
            # not sendClose: that refuses codes such as 1009
            reason = (message.get("reason") or "").encode()[:CLOSE_REASON_MAX_BYTES]
            self.sendCloseFrame(
                code=message.get("code") or NORMAL_CLOSURE, reasonUtf8=reason or None
            )
        else:
            super().handle_reply(message)

    def backlog_bytes(self) -> int:
        """Bytes written to this connection that have not left for the peer; 0 if unknown."""
        transport = self.transport
        try:
            pending = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
        except AttributeError:  # not a plain TCP transport
            return 0
        return int(pending)
