"""Several channel names in one text: one a line, or separated by spaces.

A name that has spaces in it, or begins with a quotation mark, is written as a JSON string:

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
    """The names in a text, each once, in the order in which they were written.

    What begins as a quoted name and is none is a name as it stands, to the next space.
    """
    return list(dict.fromkeys(_unquoted(match[0]) for match in _NAME.finditer(text)))


def join(names: Iterable[str]) -> str:
    """A text that `split` reads as these names, one a line."""
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
