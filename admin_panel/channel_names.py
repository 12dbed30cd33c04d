"""Several channel names in one text: one per line, or separated by spaces.

A name with spaces, or with a quotation mark at its beginning, is written as a JSON string:

    news chat:lobby
    "a name with spaces"
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_NAME = re.compile(r'"(?:[^"\\\n]|\\.)*"(?!\S)|\S+')
_WRITTEN_QUOTED = re.compile(r'\s|^"')


def split(text: str) -> list[str]:
    """Return the names in a text, each once, in their order.

    Text that starts like a quoted name but is not one is a name up to the next space.
    """
    return list(dict.fromkeys(_unquoted(match[0]) for match in _NAME.finditer(text)))


def join(names: Iterable[str]) -> str:
    """Return a text that `split` reads as these names, one per line."""
    return "\n".join(_quoted(name) for name in names)


def _unquoted(written: str) -> str:
    if not written.startswith('"'):
        return written
    try:
        name: str = json.loads(written)
    except ValueError:
        return written
    return name


def _quoted(name: str) -> str:
    return json.dumps(name) if not name or _WRITTEN_QUOTED.search(name) else name
