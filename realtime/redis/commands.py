"""Commands and scripts: what is sent to Redis, and what comes back."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
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


def in_full(request: Request) -> Command:
    """Return the command of a request. A script brings its text along."""
    if isinstance(request, ScriptCall):
        return request.script.by_text(request.keys, request.arguments)
    return request


class Calls(ABC):
    """Makes requests from an event loop."""

    @abstractmethod
    async def call(self, request: Request, wait: Wait | None = None) -> Reply:
        """Make a request and return its reply.

        Requests leave in the order in which the calls begin, also while there is no connection.

        Args:
            request: what to do.
            wait: wait until replicas have what it wrote. It keeps its order among such calls.

        Raises:
            EngineUnavailable: Redis is away or refused, or there is an error anywhere in the reply.
            NoReply: none came in time; the request may have taken effect.
            TooFewReplicas: a NoReply; Redis made the request, and may lose what it wrote.
        """

    async def execute(self, *args: Argument) -> Reply:
        """Send a command and return its reply; see `call`."""
        return await self.call(args)


class BlockingCalls(ABC):
    """Makes requests from a thread. Each takes as long as its reply."""

    @abstractmethod
    def call(self, request: Request, wait: Wait | None = None) -> Reply:
        """Make a request and return its reply. Arguments and errors as `Calls.call`."""

    def execute(self, *args: Argument) -> Reply:
        """Send a command and return its reply; see `call`."""
        return self.call(args)
