"""A client of one of the published libraries, the same for each of them: see `sdks`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, NamedTuple

START = {"offset": 0, "epoch": ""}
"""The position before everything, of whatever epoch."""


class Refused(Exception):
    """The server refused a command, with this code."""


class History(NamedTuple):
    """Publications of a channel, and its position."""

    values: list[Any]
    position: dict[str, Any]


class Sdk(ABC):
    """One client of one library."""

    @abstractmethod
    async def connect(self) -> None:
        """Begin to connect."""

    @abstractmethod
    async def connected(self) -> str:
        """Wait until it is connected; return the client ID."""

    @abstractmethod
    async def disconnect(self) -> None:
        """End the connection."""

    @abstractmethod
    async def disconnected(self) -> int:
        """Wait for the end of the connection; return its code."""

    @abstractmethod
    async def subscribe(
        self,
        channel: str,
        *,
        asks_state: bool = False,
        teams: Collection[str] = (),
        token: str = "",
    ) -> None:
        """Begin to subscribe; `teams` are values of the tag `team`."""

    @abstractmethod
    async def subscribe_again(self, channel: str) -> None:
        """Begin to subscribe after `unsubscribe`."""

    @abstractmethod
    async def subscribed(self, channel: str) -> tuple[bool, bool]:
        """Wait for a subscription; return whether it was to recover, and whether it did."""

    @abstractmethod
    async def unsubscribe(self, channel: str) -> None:
        """End a subscription."""

    @abstractmethod
    async def unsubscribed(self, channel: str) -> int:
        """Wait for the end of a subscription; return its code."""

    @abstractmethod
    async def give_state(self, position: dict[str, Any]) -> None:
        """Wait until the library asks for the state of a page, and give this position."""

    @abstractmethod
    def asks_state(self) -> bool:
        """Return whether the library waits for a state."""

    @abstractmethod
    async def values(self, channel: str, count: int) -> list[Any]:
        """Wait for the next publications; return their data."""

    @abstractmethod
    async def joined(self, channel: str) -> str:
        """Wait for a join; return the client ID."""

    @abstractmethod
    async def publish(self, channel: str, data: Any) -> None:
        """Publish. This and the following raise `Refused`."""

    @abstractmethod
    async def rpc(self) -> None:
        """Call a method."""

    @abstractmethod
    async def history(self, channel: str, limit: int, **options: Any) -> History:
        """Read history; `options` are `since` and `reverse`."""

    @abstractmethod
    async def presence(self, channel: str) -> dict[str, str]:
        """Return client IDs, each with its user."""

    @abstractmethod
    async def present(self, channel: str) -> tuple[int, int]:
        """Return the numbers of clients and users."""
