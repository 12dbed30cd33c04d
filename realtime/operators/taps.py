"""Taps: what sees each publication that a node delivers, while an operator asks for it."""

from __future__ import annotations

import logging

from realtime.node.observer import Published
from realtime.protocol.messages import ChannelName, Publication, StreamPosition

logger = logging.getLogger("realtime.node")


class Taps:
    """The taps of one node. Mostly there are none, and a publication costs one test more."""

    def __init__(self) -> None:
        self._taps: list[Published] = []
        self.published: Published | None = None
        """Gives a publication to all taps, and never raises; None if there are none."""

    def add(self, tap: Published) -> None:
        """Give each publication to a tap, until `remove`."""
        self._taps.append(tap)
        self.published = self._published

    def remove(self, tap: Published) -> None:
        """Give it none any more; unknown ones are ignored."""
        if tap in self._taps:
            self._taps.remove(tap)
        if not self._taps:
            self.published = None

    def _published(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        for tap in self._taps.copy():
            try:
                tap(channel, publication, position)
            except Exception:  # a defect here must not keep a publication from its subscribers
                logger.exception("Could not watch a publication")
                self.remove(tap)
