"""Elements of a page that name a channel and its position.

    <script type="application/json" data-realtime-channel>
        {"channel": "orders:42", "offset": 17, "epoch": "xcf4"}</script>

It is data that browsers do not run, and holds nothing secret, so caches may keep the page. While
the page is rendered, the element has a time in place of the position, and a signature of both:
{"channel": ..., "at": ms, "signature": ...}. The middleware reads the positions of all channels of
the page together, and writes them in. An element that a cache kept before that is completed with
the position of its own time. An element that the site did not write, in a file that a user uploaded
for example, has no valid signature and stays as it is: it would tell of channels that its author
may not read.

Without a position, the client loads the state once it is connected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.core.signing import Signer
from django.utils.crypto import constant_time_compare
from django.utils.html import escape, json_script
from django.utils.safestring import SafeString, mark_safe

from realtime.server_api.arguments import Position

_OPEN = '<script type="application/json"'
MARK = f"{_OPEN} data-realtime-channel".encode()
_ELEMENT = re.compile(re.escape(MARK) + rb'(?:="[^"<>]*")?>(\{[^<>]*\})</script>')

_END = b"</script>"
MAX_LENGTH = 65_536
"""Bytes of an element that may be kept back until its end comes."""

_SALT = "realtime.pages.elements"

Found = dict[tuple[str, int], Position | None]
"""Channel and time → position."""


def element(values: Mapping[str, Any], name: str = "") -> SafeString:
    """Return the element with these values. `name`: by which scripts find it."""
    attribute = f'data-realtime-channel="{escape(name)}"' if name else "data-realtime-channel"
    script = json_script(dict(values))
    return mark_safe(script.replace(_OPEN, f"{_OPEN} {attribute}", 1))


def waiting(channel: str, at: int) -> dict[str, Any]:
    """Return the values of an element that waits for the position at a time in Unix ms."""
    signature = Signer(salt=_SALT).signature(_signed(channel, at))
    return {"channel": channel, "at": at, "signature": signature}


def pending(html: bytes) -> list[tuple[str, int]]:
    """Return channel and time of each element that has no position yet."""
    if MARK not in html:
        return []
    found = (_values(match) for match in _ELEMENT.finditer(html))
    return list(dict.fromkeys((each["channel"], each["at"]) for each in found if each is not None))


def split(html: bytes) -> tuple[bytes, bytes]:
    """Return a part of a page up to an element that goes on in the next part, and the rest."""
    start = html.rfind(MARK)
    if start >= 0 and len(html) - start <= MAX_LENGTH and _END not in html[start:]:
        return html[:start], html[start:]
    for length in range(min(len(MARK) - 1, len(html)), 0, -1):
        if MARK.startswith(html[-length:]):
            return html[:-length], html[-length:]
    return html, b""


def complete(html: bytes, found: Mapping[tuple[str, int], Position | None]) -> bytes:
    """Write positions into elements; those without one lose their time only."""

    def write(match: re.Match[bytes]) -> bytes:
        values = _values(match)
        if values is None:
            return match[0]
        del values["signature"]
        position = found.get((values["channel"], values.pop("at")))
        begin = match.start(1) - match.start(0)
        text = json_script(values | as_json(position)).removeprefix(f"{_OPEN}>")
        return match[0][:begin] + text.encode()

    return _ELEMENT.sub(write, html)


def as_json(position: Position | None) -> dict[str, Any]:
    """Return a position as elements and headers have it."""
    return {} if position is None else {"offset": position.offset, "epoch": position.epoch}


def _signed(channel: str, at: int) -> str:
    return f"{at}:{channel}"


def _values(match: re.Match[bytes]) -> dict[str, Any] | None:
    """Return the values of an element that waits for its position; None of any other."""
    try:
        values = json.loads(match[1])
        channel, at, signature = (values.get(name) for name in ("channel", "at", "signature"))
        if type(channel) is not str or type(at) is not int or type(signature) is not str:
            return None
        signer = Signer(salt=_SALT)
        expected = (
            signer.signature(_signed(channel, at), key)
            for key in (signer.key, *signer.fallback_keys)
        )
        is_ours = any(constant_time_compare(signature, each) for each in expected)
    except (ValueError, RecursionError):  # of no element that the tag wrote
        return None
    return dict(values) if is_ours else None
