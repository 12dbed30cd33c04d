"""JSON of the service as a page shows it: indented, folded where it is long, cut where it is huge.

Numbers and the order of keys are shown as they were published; nothing is read into Python
objects. Letters that were published as escapes are shown as letters.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import msgspec

from realtime.payload import Payload

ONE_LINE = 80
"""Characters that are shown on one line."""

UNFOLDED_LINES = 12
UNFOLDED = 600
"""Lines and characters that are shown without being asked for."""

PREVIEW = 120
"""Characters shown of what is folded."""

LONGEST = 20_000
"""Characters shown at all: a page with many such values still has to be sent and drawn."""

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    r"|\\u[0-9a-fA-F]{4}"
    r"|\\."
)


class JSONText(NamedTuple):
    """One JSON value, ready to be shown."""

    text: str
    preview: str
    """Its beginning in one line."""
    num_bytes: int
    """Of the value as it was published."""
    is_folded: bool
    is_cut: bool
    """Whether `text` is the beginning only."""


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
    except msgspec.MsgspecError:  # half of a surrogate pair in an escape, mended in `json`
        text = msgspec.json.format(data.json, indent=indent).decode()
    except RecursionError:  # accepted where the call stack was not as deep as here
        text = data.raw.decode()
    return _ESCAPE.sub(_letter, text)


def _letter(escape: re.Match[str]) -> str:
    """The letter that an escape stands for; what cannot be seen, and most ASCII, stays escaped."""
    letter: str = json.loads(f'"{escape[0]}"')
    shown = letter in "<>&" or (letter.isprintable() and not letter.isascii())
    return letter if shown else escape[0]
