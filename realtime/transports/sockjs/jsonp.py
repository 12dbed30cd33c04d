"""JSONP: a script for each frame, for browsers that can do nothing else across origins."""

from __future__ import annotations

from urllib.parse import parse_qs

from realtime.payload import escape
from realtime.transports.sockjs.callback import string
from realtime.transports.sockjs.receiver import ReceivingTransport

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
