"""The server API as a site uses it: what is published on conditions, and what is read.

    publish      with an expected top, with a version, without history, several at once
    history      a number of publications around a position, in both directions
    positions    at a moment that is over

Invariants, each judged when the answer is there:

    expect       a publication is kept only at the offset after the top that it expected, and is not
                 refused where that was the top all the time
    versions     of two versions that a channel keeps, the later one is newer; a version is not
                 refused where no other one is as new
    refused      what was refused is delivered to nobody
    several      publications that are sent together keep their order
    history      what is read is contiguous, is what was published at its offset, and has
                 everything that is kept and was asked for
    positions    a position at a moment has nothing that came later, and all that is known to have
                 come before

They are judged where one server answered: not after a failover.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from realtime.cluster.member import NewPublication
from realtime.engine.base import Published
from realtime.engine.versions import Version
from realtime.errors import BadRequest, EngineUnavailable, UnrecoverablePosition
from realtime.node.node import Node
from realtime.payload import check
from realtime.protocol.messages import HistoryResult, StreamPosition
from realtime.streams import reading
from tests.simulation.judge import Publishing
from tests.simulation.stored import Stored, stored
from tests.simulation.world import EPOCH

if TYPE_CHECKING:
    from tests.simulation.scenario import Service

AGO_MAX = 10.0
"""Seconds, for positions at a moment."""


class ServerAPI:
    """Uses the server API of nodes, and judges what it answers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._judge = service.judge
        self._versions: dict[str, list[int]] = {}
        """What was sent to each channel."""

    async def use(self, node: Node, channel: str, chance: Random) -> None:
        """Do one thing in a channel with history."""
        do = chance.choice(
            (self._expect, self._version, self._several, self._skip, self._history, self._position)
        )
        await do(node, channel, chance)

    # publishing

    def _new(self, channel: str, **how: object) -> tuple[Publishing, NewPublication]:
        publishing = self._judge.begin(channel)
        return publishing, NewPublication(channel, check(b"%d" % publishing.number), **how)  # type: ignore[arg-type]

    def _settle(self, publishing: Publishing, published: Published) -> None:
        if not published.kept:
            self._judge.refuse(publishing)
        elif (position := published.position) is None:
            self._judge.acknowledge(publishing)
        else:
            self._judge.acknowledge(publishing, position.offset, position.epoch)

    async def _expect(self, node: Node, channel: str, chance: Random) -> None:
        before = stored(self._service, channel)
        if before is None:
            return
        offset = max(0, before.top + chance.choice((0, 0, 0, 1, -1)))
        epoch = chance.choice((before.epoch, before.epoch, "", "another"))
        options = self._service.options_of(channel)
        publishing, new = self._new(channel, expect=StreamPosition(offset, epoch))
        published = await node.publish_new(new, options)
        self._settle(publishing, published)
        position = published.position
        assert position is not None
        if published.kept:
            if position.offset != offset + 1 or epoch not in ("", position.epoch):
                self._judge.fail(f"{publishing} expected {offset}:{epoch}")
            return
        after = stored(self._service, channel)
        if after is not None and (after.top, after.epoch) == (before.top, before.epoch):
            if offset == before.top and epoch != "another":
                self._judge.fail(f"{publishing} was refused, and {offset}:{epoch} was the top")
            if (position.offset, position.epoch) != (after.top, after.epoch):
                self._judge.fail(f"{publishing} was refused at {position}, the top is {after}")

    async def _version(self, node: Node, channel: str, chance: Random) -> None:
        sent = self._versions.setdefault(channel, [7])
        number = max(1, max(sent) + chance.choice((-4, -1, 0, 1, 1, 2, 90)))
        sent.append(number)
        run = "run" if channel == "kept:0" else ""
        publishing, new = self._new(channel, version=Version(number, run))
        published = await node.publish_new(new, self._service.options_of(channel))
        self._settle(publishing, published)
        publishing.version = number
        if not published.kept and sum(other >= number for other in sent) == 1:
            self._judge.fail(f"{publishing} was refused, and is newer than all others")

    async def _several(self, node: Node, channel: str, chance: Random) -> None:
        options = self._service.options_of(channel)
        sent = [self._new(channel) for _ in range(chance.randint(2, 6))]
        results = await node.publish_many([(new, options) for _, new in sent])
        last: StreamPosition | None = None
        for (publishing, _), result in zip(sent, results, strict=True):
            if isinstance(result, EngineUnavailable):
                continue
            self._settle(publishing, result)
            position = result.position
            assert position is not None
            if last is not None and last.epoch == position.epoch and last.offset >= position.offset:
                self._judge.fail(f"{publishing} came before one that was sent before it")
            last = position

    async def _skip(self, node: Node, channel: str, chance: Random) -> None:
        publishing, new = self._new(channel, skip_history=True)
        self._settle(publishing, await node.publish_new(new, self._service.options_of(channel)))

    # reading

    async def _history(self, node: Node, channel: str, chance: Random) -> None:
        before = stored(self._service, channel)
        if before is None:
            return
        limit, reverse = chance.choice((None, -1, 0, 1, 3, 1000)), chance.random() < 0.5
        since = None
        if chance.random() < 0.7:
            offset = max(0, chance.choice((0, 1, before.first, before.top)) + chance.randint(-2, 2))
            since = StreamPosition(offset, chance.choice((before.epoch, before.epoch, "", "old")))
        asked = f"history of {channel}, {limit=} {since=} {reverse=}"
        try:
            read = await reading.read(
                node.broker, channel, limit=limit, since=since, reverse=reverse
            )
        except BadRequest:
            if not reverse or since is None or since.offset:
                self._judge.fail(f"{asked} was a bad request")
            return
        except UnrecoverablePosition:
            after = stored(self._service, channel)
            is_same = after is not None and after.epoch == before.epoch
            if is_same and since is not None and since.epoch in ("", before.epoch):
                self._judge.fail(f"{asked} was unrecoverable")
            return
        assert read.position is not None
        if since is not None and since.epoch not in ("", read.position.epoch):
            self._judge.fail(f"{asked} was read in another epoch")
        self._check_history(channel, before, read, read.position, limit, since, reverse, asked)

    def _check_history(
        self,
        channel: str,
        before: Stored,
        read: HistoryResult,
        position: StreamPosition,
        limit: int | None,
        since: StreamPosition | None,
        reverse: bool,
        asked: str,
    ) -> None:
        offsets = [publication.offset for publication in read.publications]
        for publication in read.publications:
            number = int(publication.data.json)
            if not self._judge.may_be_at(number, channel, publication.offset):
                self._judge.fail(f"{asked} has {number} at {publication.offset}")
        step = -1 if reverse else 1
        if offsets and offsets != list(range(offsets[0], offsets[0] + step * len(offsets), step)):
            self._judge.fail(f"{asked} has {offsets}")
        if limit is not None and len(offsets) > limit >= 0:
            self._judge.fail(f"{asked} has {len(offsets)}")
        after = stored(self._service, channel)
        if after is None or not before.epoch == after.epoch == position.epoch:
            return
        if after.top - after.first >= self._service.plan.history_size:
            self._judge.fail(f"{channel} keeps {after}, more than its history_size")
        top = position.offset
        if not before.top <= top <= after.top:
            self._judge.fail(f"{asked} is at {top}; the top was {before.top}, then {after.top}")
        # what may be there, and what must be there
        low, high = (0, top) if since is None else (since.offset, top)
        if reverse:
            low, high = 0, top if since is None else min(top, since.offset - 1)
        if offsets and not (low < min(offsets) <= max(offsets) <= high):
            self._judge.fail(f"{asked} has {offsets}, not in {low} to {high}")
        due = range(max(after.first, low + (since is not None and not reverse)), high + 1)
        number = len(due) if limit is None or limit < 0 else min(limit, len(due))
        first = due[::-1][:number] if reverse else due[:number]
        missing = set(first) - set(offsets)
        if missing and not (limit and not reverse and offsets and len(offsets) >= number):
            self._judge.fail(f"{asked} has {offsets}, and lacks {sorted(missing)}")

    async def _position(self, node: Node, channel: str, chance: Random) -> None:
        service, world = self._service, self._service.world
        at = world.now - chance.uniform(0, AGO_MAX)
        if chance.random() < 0.5 and (kept := stored(service, channel)) is not None:
            # near to one that is kept, or was
            known = self._judge.known_in(channel, kept.epoch)[-2 * service.plan.history_size :]
            at = chance.choice(known).began + chance.choice((-0.002, 0.002, 0.05)) if known else at
        (position,) = await node.broker.positions([channel], int((EPOCH + at) * 1000))
        after = stored(service, channel)
        if after is None or after.epoch != position.epoch:
            return
        clock = "a clock is set" if service.postgresql is None else "the clock of PostgreSQL jumps"
        if not service.shards and clock in service.counts:
            return
        known = self._judge.known_in(channel, position.epoch)
        before = [each for each in known if (each.acknowledged or world.now) < at - 0.001]
        due = max((each.offset for each in before), default=0)
        if position.offset > after.top:
            self._judge.fail(f"the position of {channel} was {position}, beyond {after}")
        for each in known:
            if each.offset <= position.offset and each.began > at + 0.001:
                self._judge.fail(f"the position of {channel} at {at} was {position}: {each}")
        is_known = due == after.top or any(each.offset == after.first for each in before)
        if is_known and position.offset < due:
            self._judge.fail(f"the position of {channel} at {at} was {position}, and not {due}")
