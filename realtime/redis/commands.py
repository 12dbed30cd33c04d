"""Commands and scripts: what is sent to Redis, and what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

Argument = bytes | str | int
Command = tuple[Argument, ...]
"""The name of a command and its arguments."""

Reply = Any
"""What Redis answers: bytes, an int, None, or a list of those."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Script(Generic[R]):
    """A Lua script, and the digest by which Redis knows it.

    `R` is the type of its reply. An array of fixed length is typed as a tuple, to be unpacked.
    """

    name: str
    text: str
    sha: str
    """SHA-1 of the text, in hexadecimal."""

    @classmethod
    def of(cls, name: str, text: str) -> Script[Any]:
        """Return the script with this text."""
        return cls(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    @classmethod
    def load(cls, path: Path) -> Script[Any]:
        """Read a script; its name is that of the file without the suffix.

        Raises:
            OSError: the file cannot be read.
        """
        return cls.of(path.stem, path.read_text(encoding="utf-8"))

    def by_text(self, keys: Sequence[Argument], arguments: Sequence[Argument]) -> Command:
        """Return the command that brings the text along; Redis remembers the script then."""
        return ("EVAL", self.text, len(keys), *keys, *arguments)

    def by_digest(self, keys: Sequence[Argument], arguments: Sequence[Argument]) -> Command:
        """Return the short command; Redis refuses it when it does not know the script."""
        return ("EVALSHA", self.sha, len(keys), *keys, *arguments)


class ScriptCall(NamedTuple, Generic[R]):
    """A script with its keys and arguments."""

    script: Script[R]
    keys: Sequence[Argument]
    arguments: Sequence[Argument]


class Wait(NamedTuple):
    """How many replicas must have a write before it counts as done, and for how long to wait."""

    replicas: int
    milliseconds: int

    def command(self) -> Command:
        """Return the command; its reply is the number of replicas."""
        return b"WAIT", self.replicas, self.milliseconds


Request = Command | ScriptCall[Any]
"""One round trip."""
