"""Parts of the tests of maps: their options, the site's changes, and a client that reads them."""

from __future__ import annotations

from typing import Any

from realtime.cluster.member import NewPublication
from realtime.node.node import Node
from realtime.server_api import operations
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import data, turns

STATE, STREAM = 2, 1

OPTIONS: dict[str, Any] = {
    "namespaces": [
        {"name": "plain"},
        {"name": "map", "map": "recoverable", "history_size": 20, "allow_tags_filter": True},
        {"name": "kept", "map": "persistent"},
        {"name": "recovers", "map": "recoverable", "history_recover": True},
        {"name": "brief", "map": "ephemeral"},
        {"name": "seen", "map": "recoverable", "presence": True},
        {"name": "open", "map": "recoverable", "map_publish": "client"},
        {"name": "theirs", "map": "recoverable", "map_publish": "subscriber"},
        {"name": "all", "map": "recoverable", "map_publish": "client", "publish": True},
        {"name": "cursors", "map": "ephemeral", "map_publish": "client", "map_key": "client"},
        {"name": "votes", "map": "persistent", "map_publish": "client", "map_key": "user"},
        {"name": "full", "map": "recoverable", "map_publish": "client", "map_max_keys": 2},
    ],
}

MAPS = ["map:a", "kept:a", "brief:a"]


async def put(node: Node, channel: str, key: str, value: int, **extra: Any) -> None:
    """Put a number, as the site does."""
    await operations.publish(node, NewPublication(channel, data(str(value)), key=key, **extra))
    await turns()


async def remove(node: Node, channel: str, key: str) -> None:
    """Remove a key, as the site does."""
    new = NewPublication(channel, data("null"), key=key, removed=True)
    await operations.publish(node, new)
    await turns()


async def fill(node: Node, channel: str, count: int) -> None:
    """Put so many keys, each with its number."""
    for number in range(count):
        await put(node, channel, f"k{number:04}", number)


async def entries(node: Node, channel: str) -> dict[str, Any]:
    """Return the map as the server has it."""
    assert node.maps is not None
    page = await node.maps.page(channel, limit=10_000)
    return {entry.key: int(entry.data.raw) for entry in page.entries}


def fold(entries: dict[str, Any], publications: list[dict[str, Any]]) -> None:
    """Apply publications to entries, as clients do."""
    for publication in publications:
        if publication.get("removed"):
            entries.pop(publication["key"], None)
        else:
            entries[publication["key"]] = publication["data"]


class Reader:
    """A map as one client has it."""

    def __init__(self, connection: SecondConnection, channel: str) -> None:
        self.connection = connection
        self.channel = channel
        self.entries: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        """The newest reply."""
        self.requests = 0
        self._seen = 0

    async def begin(self, **params: Any) -> None:
        """Ask for the first page."""
        self._seen = len(self.connection.pushed)
        await self._ask(phase=STATE, **params)

    async def go_on(self, **params: Any) -> None:
        """Ask for the next page."""
        own = {name: self.last[name] for name in ("cursor", "epoch", "offset") if name in self.last}
        await self._ask(phase=STATE, **(own | params))

    async def read(self, **params: Any) -> None:
        """Read all pages."""
        await self.begin(**params)
        while self.last.get("phase"):
            await self.go_on(**params)

    async def recover(self, **params: Any) -> None:
        """Come back with the position of the last reply."""
        own = {"epoch": self.last["epoch"], "offset": self.last["offset"], "recover": True}
        await self._ask(phase=STREAM, **(own | params))

    async def _ask(self, **params: Any) -> None:
        self.requests += 1
        self.last = await self.connection.call("subscribe", channel=self.channel, type=1, **params)
        fold(self.entries, self.last.get("state", []))
        fold(self.entries, self.last.get("publications", []))

    @property
    def now(self) -> dict[str, Any]:
        """The map with all pushes."""
        pushes = self.connection.pushed[self._seen :]
        self._seen += len(pushes)
        fold(self.entries, [push["pub"] for push in pushes if "pub" in push])
        return self.entries


def is_clean(node: Node, channel: str) -> bool:
    """Return whether nothing of a subscription is left."""
    return channel not in node.hub.feeds and node.subscriptions.count == 0
