"""Parts of the tests of followers: a stream, and a line from the engine that may be cut."""

from __future__ import annotations

import asyncio

from realtime.engine.base import Outgoing
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.follower import StreamFollower
from realtime.timers import Timers
from tests.unit.node.node_parts import RECOVERABLE
from tests.unit.parts import data
from tests.unit.suspended_engine import SuspendedEngine


class Line:
    """Brings publications of one channel to a follower, or loses them."""

    def __init__(self, engine: SuspendedEngine) -> None:
        self.engine = engine
        self.follower = StreamFollower(engine.broker, "a", self._deliver, self._lost)
        self.delivered: list[int] = []
        """The data of the publications that were delivered."""
        self.losses = 0
        """How often the stream was lost."""
        self._cut = False
        self._last: tuple[Publication, StreamPosition] | None = None
        self._uids = 0

    def _deliver(self, publication: Publication) -> None:
        self.delivered.append(int(publication.data.raw))

    def _lost(self) -> None:
        self.losses += 1

    @property
    def position(self) -> StreamPosition:
        """The position of the last publication delivered; there must be one."""
        position = self.follower.position
        assert position is not None
        return position

    async def publish(self, *values: int) -> None:
        for value in values:
            self._uids += 1
            publication = Publication(data(str(value)), None, 0, f"u{self._uids}")
            await self.engine.broker.publish(Outgoing("a", publication, RECOVERABLE))

    async def lose(self, *values: int) -> tuple[Publication, StreamPosition]:
        """Publish values that do not arrive; return the last publication."""
        self._cut = True
        await self.publish(*values)
        self._cut = False
        assert self._last is not None
        return self._last

    def arrive(self, publication: Publication, position: StreamPosition) -> None:
        """Bring a publication now."""
        self.follower.on_publication(publication, position)

    # see `engine.base.Receiver`

    uid = "N1"

    def on_publication(
        self, channel: str, publication: Publication, position: StreamPosition | None
    ) -> None:
        assert position is not None
        self._last = publication, position
        if not self._cut:
            self.arrive(publication, position)

    def on_notice(self, channel: str, notice: object) -> None:
        raise AssertionError("there are no joins here")

    def on_first(self, kind: object, name: str) -> None:
        pass

    def on_last(self, kind: object, name: str) -> None:
        pass

    def on_advance(self, channel: str, position: StreamPosition) -> None:
        self.follower.on_advance(position)

    def on_interrupted(self, concerns: object) -> None:
        raise AssertionError("tests interrupt the follower themselves")

    def on_resumed(self, concerns: object) -> None:
        raise AssertionError("tests resume the follower themselves")


async def open_line() -> Line:
    """A line from an engine of its own; its follower is not started."""
    line = Line(SuspendedEngine(Timers(asyncio.get_running_loop())))
    await line.engine.start(line, "")
    await line.engine.broker.subscribe("a")
    return line


async def resume(line: Line) -> None:
    """End the last interruption."""
    await line.follower.resume(line.follower.interruptions)
