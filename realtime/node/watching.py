"""Watching: what sees each publication that this node delivers, while an operator asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from realtime.protocol.messages import ChannelName, Publication, StreamPosition

logger = logging.getLogger("realtime.node")

Watcher: TypeAlias = Callable[[ChannelName, Publication, StreamPosition | None], None]


class Watching:
    """The watchers of one node. Mostly there are none, and a publication costs one test more."""

    __slots__ = ("_watchers", "on_publication")

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self.on_publication: Watcher | None = None
        """Gives a publication to all watchers, and never raises; None if there are none."""

    def add(self, watcher: Watcher) -> None:
        """Give each publication to a watcher, until `remove`."""
        self._watchers.append(watcher)
        self.on_publication = self._on_publication

    def remove(self, watcher: Watcher) -> None:
        """Give it none any more; unknown ones are ignored."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)
        if not self._watchers:
            self.on_publication = None

    def _on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        for watcher in self._watchers.copy():
            try:
                watcher(channel, publication, position)
            except Exception:  # a defect here must not keep a publication from its subscribers
                logger.exception("Could not watch a publication")
                self.remove(watcher)
