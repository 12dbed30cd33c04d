"""What the libraries of types have in common: an adapter for each, and one exception."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from realtime.payload import Payload

T = TypeVar("T")

Schema = dict[str, Any]
"""A JSON Schema."""

REFERENCE = "#/components/schemas/{name}"
"""How schemas name each other."""


MAX_REASON = 300
"""Characters of the text of a mismatch."""


class Mismatch(ValueError):
    """Data do not have the declared type. The text says what is expected, and the path.

    A path holds keys that a client may have chosen: the text is one line, and bounded.
    """

    def __init__(self, reason: str) -> None:
        line = reason[:MAX_REASON]
        if not line.isprintable():
            line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
        super().__init__(line[:MAX_REASON])


class Adapter(Protocol[T]):
    """Reads and writes the values of one type, by the library that it comes from."""

    name: str
    """The name of the type, for messages and documents."""
    may_query: bool
    """Whether `decode` may query the database."""

    def decode(self, data: bytes) -> T:
        """Return the value that JSON stands for.

        Raises:
            Mismatch: it is not one of this type.
        """

    def encode(self, value: T) -> Payload:
        """Return the JSON of a value.

        Raises:
            TypeError: it has no JSON form.
        """

    def schema(self) -> tuple[Schema, dict[str, Schema]]:
        """Return the JSON Schema of the type, and those of the types that it names."""

    def members(self) -> list[Adapter[Any]]:
        """Return an adapter for each type of a union; of another type, this one."""
