"""What the libraries of types have in common: an adapter for each, and one exception."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from realtime.payload import Payload

T = TypeVar("T")

Schema = dict[str, Any]
"""A JSON Schema."""

REFERENCE = "#/components/schemas/{name}"
"""How schemas name each other."""


class Mismatch(ValueError):
    """Data do not have the declared type. The text says what is expected, and the path."""


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
        ...

    def encode(self, value: T) -> Payload:
        """Return the JSON of a value.

        Raises:
            TypeError: it has no JSON form.
        """
        ...

    def schema(self) -> tuple[Schema, dict[str, Schema]]:
        """Return the JSON Schema of the type, and those of the types that it names."""
        ...

    def members(self) -> list[Adapter[Any]]:
        """Return an adapter for each type of a union; of another type, this one."""
        ...
