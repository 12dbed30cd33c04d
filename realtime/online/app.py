"""What the service calls: see `server_api.online`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.apps import apps

from realtime.node.node import Node
from realtime.online import querysets
from realtime.protocol.messages import UserID

if TYPE_CHECKING:
    from realtime.online.seen.writer import Writer

SEEN = "realtime.online.seen"
"""The app that keeps when users were online last."""


class Online:
    """See `server_api.online.OnlineUsers` for the contract."""

    def __init__(self) -> None:
        self._writers: dict[Node, Writer] = {}
        """Node → what writes when its users were online last."""
        self._stopping: list[Writer] = []

    async def start(self, node: Node) -> None:
        if apps.is_installed(SEEN):
            from realtime.online.seen.writer import Writer

            writer = self._writers[node] = Writer(node)
            writer.start()

    def begin_stop(self, node: Node) -> None:
        if (writer := self._writers.pop(node, None)) is not None:
            writer.begin_stop()
            self._stopping.append(writer)

    async def stop(self) -> None:
        stopping, self._stopping = self._stopping, []
        for writer in stopping:
            await writer.stop()

    def with_ids(self, ids: Iterable[UserID]) -> Any:
        return querysets.with_ids(ids)
