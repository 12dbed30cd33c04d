"""Stored: streams as they are kept at this moment, to compare with what the service says.

A stream is only ever appended to, trimmed, or lost. So what is kept after a node has read it, and
was there before, must be in what it read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from realtime.protocol.messages import StreamPosition
from realtime.serving import run_by_hand
from tests.simulation import postgresql_kept
from tests.simulation.plan import CLUSTER, CONFIRMED, SENTINEL

if TYPE_CHECKING:
    from tests.simulation.scenario import Service


MOVES = {
    "Redis fails over",
    "a slot moves key by key",
    "slots move at once",
    "a server has an old map of slots",
}
"""Faults after which another server may have a stream."""


class Stored(NamedTuple):
    """A stream at one moment: publications from `first` to the top are kept."""

    epoch: str
    first: int
    """The offset after the top where none is kept."""
    top: int

    def is_whole(self, since: StreamPosition) -> bool:
        """Return whether everything that followed a position is kept."""
        return since.epoch == self.epoch and self.first - 1 <= since.offset <= self.top


def stored(service: Service, channel: str) -> Stored | None:
    """Return a stream; None where masters changed, because nodes may have read another one."""
    if service.postgresql is not None:
        found = postgresql_kept.stream(service.postgresql, channel)
        return None if found is None else Stored(*found)
    if not service.shards:
        return _in_memory(service, channel)
    if service.plan.engine in (SENTINEL, CONFIRMED, CLUSTER) and MOVES & service.counts.keys():
        return None
    database = service.database_of(channel)
    stream_key, meta_key, epoch_key = (key.encode() for key in service.keys.stream(channel))
    run = f"-{database.replid[:8]}" if service.plan.epoch_per_run else ""
    meta = database.peek(meta_key)
    if meta is None:
        epoch = database.peek(epoch_key)
        return None if epoch is None else Stored(epoch.decode() + run, 1, 0)
    top = int(meta.get(b"s", b"0"))
    kept = database.peek(stream_key) or ()
    return Stored(meta[b"e"].decode() + run, top - len(kept) + 1, top)


def _in_memory(service: Service, channel: str) -> Stored | None:
    node = service.nodes[0].node
    if node is None:
        return None
    history = run_by_hand(node.broker.history(channel))
    top = history.position.offset
    return Stored(history.position.epoch, top - len(history.publications) + 1, top)
