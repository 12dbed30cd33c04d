"""Script: a Lua script that Redis knows by its digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a script, and what EVALSHA calls it."""

    name: str
    text: str
    sha: str
    """SHA-1 of the text, in hexadecimal."""

    @classmethod
    def of(cls, name: str, text: str) -> Script:
        """The script with this text."""
        return cls(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    @classmethod
    def load(cls, path: Path) -> Script:
        """Read a script; its name is that of the file without the suffix.

        Raises:
            OSError: the file cannot be read.
        """
        return cls.of(path.stem, path.read_text(encoding="utf-8"))
