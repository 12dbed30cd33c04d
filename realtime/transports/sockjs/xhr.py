"""XMLHttpRequest: polling, streaming, and sending for most other transports."""

from __future__ import annotations

from realtime.transports.sockjs.receiver import ReceivingTransport

_JAVASCRIPT = "application/javascript; charset=UTF-8"


def _line(frame: bytes) -> bytes:
    return frame + b"\n"


XHR = ReceivingTransport(_JAVASCRIPT, _line, limit=0)
XHR_STREAMING = ReceivingTransport(
    _JAVASCRIPT,
    _line,
    # some browsers show nothing of a response before so much of it has come
    prelude=b"h" * 2048 + b"\n",
)
