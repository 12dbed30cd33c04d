"""XMLHttpRequest: polling, streaming, and sending for most other transports."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import msgspec

from realtime.payload import escape
from realtime.transports.emulation.response import ReceivingTransport

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


_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")


def name_in(query: str) -> str | None:
    """The callback a query string names, "" for none; None when it cannot be a name."""
    fields = parse_qs(query)
    name = fields.get("c", fields.get("callback", [""]))[0]
    return name if not name or _NAME.fullmatch(name) else None


def string(frame: bytes) -> bytes:
    """A frame as a string literal."""
    return msgspec.json.encode(frame.decode())


def _event(frame: bytes) -> bytes:
    # sockjs-client takes the data for a part of a URL; in JSON a percent sign is in a string
    return b"data: " + frame.replace(b"%", b"\\u0025") + b"\r\n\r\n"


EVENTSOURCE = ReceivingTransport("text/event-stream; charset=UTF-8", _event, prelude=b"\r\n")


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


FORM = "application/x-www-form-urlencoded"
FIELDS_ALLOWED = 10


def jsonp(callback: str) -> ReceivingTransport:
    """For a page that has the function `callback`."""
    name = callback.encode()

    def call(frame: bytes) -> bytes:
        return name + b"(" + escape(string(frame)) + b");\r\n"

    return ReceivingTransport("application/javascript; charset=UTF-8", call, limit=0)


def frames_in(content_type: str, body: bytes) -> bytes:
    """What a form sent: its field `d`, or a body that is no form.

    Raises:
        ValueError: it is a form, and a bad one.
    """
    if content_type.partition(";")[0].strip().lower() != FORM:
        return body
    fields = parse_qs(body.decode(), max_num_fields=FIELDS_ALLOWED, errors="strict")
    return fields.get("d", [""])[0].encode()
