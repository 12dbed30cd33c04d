"""Declared types of channels: the contract between the service and `realtime.typed`.

A site that declares types gives the configuration an object of this contract. The service knows
nothing else of them, and loads nothing of them where the site declares none.

Pure.
"""

from __future__ import annotations

from typing import Protocol

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
        ...


class ChannelTypes(Protocol):
    """The types that the site declared, by channel."""

    def of_clients(self, channel: str) -> DataCheck | None:
        """Return what checks publications of clients into a channel; None: no type is declared."""
        ...

    def check_sent(self, channel: str, data: Payload) -> None:
        """Check a publication of the site, as the option `typed_channels` says.

        Raises:
            BadRequest: the data do not have a declared type, and the option is "raise".
            InternalError: the declaration has a mistake, and the option is "raise".
        """
        ...

    def patterns(self) -> list[str]:
        """Return the channel patterns with declared types."""
        ...

    def problems(self) -> list[str]:
        """Return the mistakes in the declarations, as sentences."""
        ...
