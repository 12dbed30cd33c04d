"""Callbacks of pages, by name; and frames as JavaScript strings for them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import msgspec

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")


def name_in(query: str) -> str | None:
    """The callback a query string names, "" for none; None when it cannot be a name."""
    fields = parse_qs(query)
    name = fields.get("c", fields.get("callback", [""]))[0]
    return name if not name or _NAME.fullmatch(name) else None


def string(frame: bytes) -> bytes:
    """A frame as a string literal."""
    return msgspec.json.encode(frame.decode())
