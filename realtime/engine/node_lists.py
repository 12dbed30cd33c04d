"""The lists of one node, one of each kind: what engines with a server have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from realtime.engine.base import Receiver
from realtime.engine.channel_list import ChannelList, ChannelSet
from realtime.engine.lists import Kind

BATCH_PAUSE = 0.1
"""Seconds between two changes of users that are written, so that those who connect together share a
step; and until a user is removed, who may be on the way from one page to the next."""


class ListsByKind:
    """The lists of one node, one of each kind: what engines with a server have in common."""

    def __init__(self) -> None:
        self.channels = ChannelList()
        """The list of channels, which the broker keeps."""
        self._lists = {
            Kind.CHANNELS: self.channels,
            Kind.USERS: ChannelList(BATCH_PAUSE),
            Kind.CHANNEL_USERS: ChannelList(BATCH_PAUSE),
        }
        self._used = {Kind.CHANNELS}
        """Kinds of which there was ever a name: the others cost nothing."""

    def add(self, kind: Kind, name: str) -> None:
        """List a name, soon."""
        if name not in self._lists[kind]:
            self._used.add(kind)
            self._lists[kind].add(name)

    def discard(self, kind: Kind, name: str) -> None:
        """Remove a name, soon."""
        self._lists[kind].discard(name)

    def doubt(self) -> None:
        """Compare the lists one by one at the next heartbeat: the server was away."""
        for each in self._lists.values():
            each.doubt()

    async def idle(self) -> None:
        """Wait until no change is being written."""
        await asyncio.gather(*(each.idle() for each in self._lists.values()))

    async def close(self) -> None:
        """Write nothing more."""
        await asyncio.gather(*(each.close() for each in self._lists.values()))

    def _open(self, receiver: Receiver, set_of: Callable[[Kind], ChannelSet]) -> None:
        for kind, each in self._lists.items():
            each.open(set_of(kind), partial(_report, receiver, kind))

    async def _begin_anew(self) -> None:
        for each in self._lists.values():
            await each.begin_anew()

    async def _renew(self) -> None:
        for kind in list(self._used):
            await self._lists[kind].renew()

    async def _finish(self) -> None:
        await asyncio.gather(*(each.finish() for each in self._lists.values()))


def _report(receiver: Receiver, kind: Kind, first: Sequence[str], last: Sequence[str]) -> None:
    for name in first:
        receiver.on_first(kind, name)
    for name in last:
        receiver.on_last(kind, name)
