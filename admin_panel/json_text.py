"""JSON as a page shows it: indented, folded if it is long, cut if it is very long.

Numbers and the order of keys stay as they were published, because nothing is decoded into Python
objects. Characters that were published as escapes are shown as themselves.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import msgspec

from realtime.payload import Payload

ONE_LINE = 80
"""Characters of a value that fits on one line."""

UNFOLDED_LINES = 12
UNFOLDED = 600
"""Lines and characters of a value that is not folded."""

PREVIEW = 120
"""Characters of a folded value that are shown."""

LONGEST = 20_000
"""Characters of a value on a page, which may have many of them."""

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    r"|\\u[0-9a-fA-F]{4}"
    r"|\\."
)


class JSONText(NamedTuple):
    """A JSON value, laid out."""

    text: str
    preview: str
    """Its beginning in one line."""
    num_bytes: int
    """The size of the value as it was published."""
    is_folded: bool
    is_cut: bool
    """Whether `text` is only the beginning."""


def json_text(data: Payload) -> JSONText:
    """Lay out a JSON value."""
    line = _format(data, indent=0)
    num_bytes = len(data.raw)
    if len(line) <= ONE_LINE:
        return JSONText(line, line, num_bytes, is_folded=False, is_cut=False)
    # deep nesting would make the indented text many times longer than the value
    text = _format(data, indent=2) if len(line) <= LONGEST else line
    preview = line[:PREVIEW] + "…" if len(line) > PREVIEW else line
    is_folded = len(text) > UNFOLDED or text.count("\n") >= UNFOLDED_LINES
    return JSONText(text[:LONGEST], preview, num_bytes, is_folded, is_cut=len(text) > LONGEST)


def _format(data: Payload, indent: int) -> str:
    try:
        text = msgspec.json.format(data.raw, indent=indent).decode()
    except msgspec.MsgspecError:  # a lone surrogate escape, which `json` has replaced
        text = msgspec.json.format(data.json, indent=indent).decode()
    except RecursionError:  # it was accepted with a shallower call stack
        text = data.raw.decode()
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    """Return the character of an escape. Invisible characters and most of ASCII stay escapes."""
    character: str = json.loads(f'"{escape[0]}"')
    is_shown = character in "<>&" or (character.isprintable() and not character.isascii())
    return character if is_shown else escape[0]
