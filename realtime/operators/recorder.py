"""The recorder of a node: its samples and its events of the last hour, in memory.

    start ──► at the end of each slot: a sample, and the events that its figures tell ──► stop

The answer to the question of a survey is all of it. Nothing is counted for it on the way of a
message.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping

from realtime import logs
from realtime.cluster.context import Context
from realtime.config.options import CONFIG_FIELDS, Config
from realtime.engine.nodes import Cluster
from realtime.errors import DisconnectSlow
from realtime.operators.event_log import EventLog
from realtime.operators.node_watch import NodeWatch
from realtime.operators.questions import SLOT_SECONDS, PastAnswer
from realtime.operators.samples import CLOSED, Reading, Samples

MARGIN = 0.05
"""Seconds after the end of a slot in which a sample is taken: two clocks differ a little."""

LATE = 500_000
"""Microseconds of loop lag that are an event: users notice them."""

MANY = 20
"""Connections that must end in one slot at least, to be many."""
SHARE = 0.25
"""Their share of the connections that there were."""
USUAL = 3
"""How many times as many as on average before."""
BEFORE = 6
"""Samples of which the average is taken."""


class NodeRecorder:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        context: Context,
        name: str,
        read: Callable[[], Reading],
        cluster: Cluster | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        Args:
            name: of the node.
            read: returns the figures of the node.
            cluster: the other nodes, if there may be some.
            clock: returns Unix seconds.
        """
        self._uid, self._name = context.uid, name
        self._options = digest(context.config)
        self._timers = context.timers
        self._read = read
        self._clock = clock
        self._timer = context.timers.timer(self._sample)
        self.started = clock()
        """Unix seconds."""
        self._connections = 0
        self._ended: list[int] = []
        """How many connections ended in each of the last samples."""
        self.samples = Samples()
        self.events = EventLog(clock)
        self._watch: NodeWatch | None = None
        if cluster is not None:
            self._watch = NodeWatch(context, cluster, self.events)

    def start(self) -> None:
        """Begin to take samples, and note log records."""
        self.sample_from_now()
        self.events.add("node_started", self._name, subject=self._uid)
        logs.watch(self.events.on_record)
        if self._watch is not None:
            self._watch.start()

    def stop(self) -> None:
        """Note nothing more."""
        self._timer.cancel()
        logs.unwatch(self.events.on_record)

    def answer(self) -> PastAnswer:
        """Return all that is kept."""
        return PastAnswer(
            node=self._uid,
            name=self._name,
            now=self._clock(),
            started=self.started,
            options=self._options,
            slots=self.samples.slots,
            samples=self.samples.figures(),
            events=self.events.events(),
        )

    def sample_from_now(self) -> None:
        """Count from now on, for the next sample.

        It is taken at the end of this slot, or of the next one if that is near: what is counted in
        a second, such as connections at the start, would make a rate that is far too high.
        """
        now = self._clock()
        self.samples.begin(now, self._read())
        is_near = SLOT_SECONDS - now % SLOT_SECONDS < SLOT_SECONDS / 2
        self._set(now + SLOT_SECONDS / 2 if is_near else now, now)

    def _set(self, after: float, now: float) -> None:
        """Take the next sample at the first end of a slot after a time."""
        seconds = after - now + SLOT_SECONDS - after % SLOT_SECONDS + MARGIN
        self._timer.set(self._timers.now() + seconds)

    def _sample(self) -> None:
        now = self._clock()
        self._set(now, now)
        if (sample := self.samples.add(now, self._read())) is not None:
            self._note(sample)

    def _note(self, sample: Mapping[str, int]) -> None:
        """Add the events that a sample tells."""
        if lag := sample.get("lag", 0):
            self._note_number("late_loop", lag // 1000 if lag >= LATE else 0)
        self._note_number("refused", sample.get("refused", 0))
        self._note_number("slow_clients", sample.get(f"{CLOSED}{DisconnectSlow.code}", 0))
        ended = sum(number for name, number in sample.items() if name.startswith(CLOSED))
        usual = sum(self._ended) / max(1, len(self._ended))
        if ended >= max(MANY, SHARE * self._connections, USUAL * usual):
            self._note_number("mass_disconnect", ended)
        self._ended = [*self._ended, ended][-BEFORE:]
        self._connections = sample.get("connections", 0)

    def _note_number(self, kind: str, number: int) -> None:
        if number:
            self.events.add(kind, number=number)


def digest(config: Config) -> str:
    """Return what is equal for equal options, without secrets and the name of the node."""
    options = {
        name: config.value_of(name)
        for name, option in CONFIG_FIELDS.items()
        if option.repr and name != "name"
    }
    shown = (config.channel, config.namespaces, options)
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]
