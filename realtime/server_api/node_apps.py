"""Optional apps that work beside each node: the contract between them and `serving`."""

from __future__ import annotations

from typing import Protocol

from realtime.node.node import Node


class NodeApp(Protocol):
    """An optional app that works beside each node. Its methods never raise."""

    async def start(self, node: Node) -> None:
        """Begin to work beside a node."""

    def begin_stop(self, node: Node) -> None:
        """Begin to stop what `start` began. Returns at once."""

    async def stop(self) -> None:
        """Wait until nothing is under way, a second at most."""
