"""How SockJS frames stand in a request or a response: one format per SockJS transport.

    transport       format of the response
    xhr             one frame in a line, then the end
    xhr_streaming   a line per frame
    eventsource     an event per frame
    htmlfile        a page with a script per frame, which calls the page around it
    jsonp           a script with one frame, which calls a function of the page

    transport       format of the request
    xhr_send        the body
    jsonp_send      the field `d` of a form, or the body

See docs/protocol.md, 8, and SockJS protocol 0.3.4.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import msgspec

from realtime.payload import escape
from realtime.transports.emulation.response import ResponseFormat

JAVASCRIPT = "application/javascript; charset=UTF-8"
EVENT_STREAM = "text/event-stream; charset=UTF-8"
HTML = "text/html; charset=UTF-8"
FORM = "application/x-www-form-urlencoded"

XHR_PRELUDE_BYTES = 2048
"""Some browsers give a script nothing of a response before this size."""
PAGE_PRELUDE_BYTES = 1024
"""Some browsers run no script of a page before this size."""
MAX_FORM_FIELDS = 10

_CALLBACK = re.compile(r"[a-zA-Z0-9_.-]{1,128}")


# responses that a page reads as text


def _line(frame: bytes) -> bytes:
    return frame + b"\n"


def _event(frame: bytes) -> bytes:
    # sockjs-client takes the data for a part of a URL; in JSON a percent sign is in a string
    return b"data: " + frame.replace(b"%", b"\\u0025") + b"\r\n\r\n"


XHR = ResponseFormat(JAVASCRIPT, _line, limit=0)
XHR_STREAMING = ResponseFormat(JAVASCRIPT, _line, prelude=b"h" * XHR_PRELUDE_BYTES + b"\n")
EVENTSOURCE = ResponseFormat(EVENT_STREAM, _event, prelude=b"\r\n")


# responses that call a function of a page


def callback_in(query: str) -> str | None:
    """Return the callback that a query string names.

    Returns:
        The name; "" if the query has none; None if it is not safe in a script.
    """
    fields = parse_qs(query)
    name = fields.get("c", fields.get("callback", [""]))[0]
    return name if not name or _CALLBACK.fullmatch(name) else None


def _literal(frame: bytes) -> bytes:
    """Return a frame as a JavaScript string that cannot end the script around it."""
    return escape(msgspec.json.encode(frame.decode()))


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


def htmlfile(callback: str) -> ResponseFormat:
    """Return the format for a frame whose parent page has the object `callback`."""

    def script(frame: bytes) -> bytes:
        return b"<script>\np(" + _literal(frame) + b");\n</script>\r\n"

    page = _PAGE.format(callback=callback).encode()
    return ResponseFormat(HTML, script, prelude=page.ljust(PAGE_PRELUDE_BYTES) + b"\r\n\r\n")


def jsonp(callback: str) -> ResponseFormat:
    """Return the format for a page that has the function `callback`."""

    name = callback.encode()

    def call(frame: bytes) -> bytes:
        return name + b"(" + _literal(frame) + b");\r\n"

    return ResponseFormat(JAVASCRIPT, call, limit=0)


# requests


def frames_in(content_type: str, body: bytes) -> bytes:
    """Return the SockJS frames that a request carries.

    Returns:
        The field `d` of a form, or any other body as it is.

    Raises:
        ValueError: the body is a form that cannot be read.
    """
    if content_type.partition(";")[0].strip().lower() != FORM:
        return body
    fields = parse_qs(body.decode(), max_num_fields=MAX_FORM_FIELDS, errors="strict")
    return fields.get("d", [""])[0].encode()
