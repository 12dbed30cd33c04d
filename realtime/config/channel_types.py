"""Declared types of channels: the contract between the service and `realtime.typed`.

A site that declares types gives the configuration an object of this contract. The service knows
nothing else of them, and loads nothing of them where the site declares none.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from realtime.payload import Payload


class DataCheck(Protocol):
    """Checks what clients publish into one channel."""

    may_query: bool
    """Whether it may query the database, so that it must not run on an event loop."""

    def accept(self, data: Payload) -> None:
        """Check the data of a client.

        Raises:
            BadRequest: they do not have the declared type. The message says where.
            InternalError: the declaration has a mistake; the log says which.
        """


class TypeDescription(NamedTuple):
    """A declared type, for operators."""

    name: str
    schema: str
    """Its JSON Schema, in lines."""
    example: str
    """JSON to start from, in lines."""


class TypedPattern(NamedTuple):
    """A channel pattern, and the types of what its subscribers get."""

    text: str
    types: Sequence[TypeDescription]


class ChannelTypes(Protocol):
    """The types that the site declared, by channel."""

    def of_clients(self, channel: str) -> DataCheck | None:
        """Return what checks publications of clients into a channel; None: no type is declared."""

    def check_sent(self, channel: str, data: Payload) -> None:
        """Check a publication of the site, as the option `typed_channels` says.

        Raises:
            BadRequest: the data do not have a declared type, and the option is "raise".
            InternalError: the declaration has a mistake, and the option is "raise".
        """

    def mode(self) -> str:
        """Return what the option `typed_channels` says: "raise", "log" or "off"."""

    def mismatch(self, channel: str, data: Payload) -> str:
        """Return why data do not have a declared type; "" if they do, or none is declared."""

    def describe(self, channel: str) -> TypedPattern | None:
        """Return the declared types of a channel; None if there are none that can be used."""

    def patterns(self) -> list[str]:
        """Return the channel patterns with declared types."""

    def problems(self) -> list[str]:
        """Return the mistakes in the declarations, as sentences."""
