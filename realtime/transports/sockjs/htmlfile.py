"""HTML file: a page in a hidden frame that never ends, with a script for each frame."""

from __future__ import annotations

from realtime.payload import escape
from realtime.transports.sockjs.callback import string
from realtime.transports.sockjs.receiver import ReceivingTransport

PRELUDE_BYTES = 1024
"""Browsers do not run the scripts of a shorter page."""

_PAGE = """<!doctype html>
<html>
<head><meta charset="UTF-8"><title>SockJS</title></head>
<body>
<script>
var receiver = parent.{callback};
function p(frame) {{ receiver.message(frame); }}
window.onload = function () {{ receiver.stop(); }};
receiver.start();
</script>
"""


def _script(frame: bytes) -> bytes:
    # escaped, so that no frame can end the script
    return b"<script>\np(" + escape(string(frame)) + b");\n</script>\r\n"


def htmlfile(callback: str) -> ReceivingTransport:
    """For a page whose parent has the object `callback`."""
    page = _PAGE.format(callback=callback).encode()
    prelude = page.ljust(PRELUDE_BYTES) + b"\r\n\r\n"
    return ReceivingTransport("text/html; charset=UTF-8", _script, prelude)
