"""Several processes behind one Redis: fan-out over two of them, and publishing from outside."""

from __future__ import annotations

import contextlib
from functools import partial

from benchmarks.cells import TWO_PUBSUB
from benchmarks.load import Figures, LoadError, Talker
from benchmarks.measures.fanout import PLAIN_WINDOW, SUBSCRIBERS, WINDOWS
from benchmarks.measures.run import Run, Station
from benchmarks.processes import cpu_seconds

PUBLISH = "publish"
PUBLISH_KEPT = "publish, with history"
SEND_PUBSUB = "async_to_sync(group_send), pubsub"
SEND_CORE = "async_to_sync(group_send), core"
APUBLISH_KEPT = "apublish in a node, with history, 50 callers"
REDIS_PY = "redis.asyncio, the same script, 1 caller"
WAYS = {
    PUBLISH: "publish",
    PUBLISH_KEPT: "publish-kept",
    SEND_PUBSUB: "group_send-pubsub",
    SEND_CORE: "group_send-core",
    APUBLISH_KEPT: "apublish-kept",
    REDIS_PY: "redis-py",
}
"""Name in the report → way of `servers/bench_publish.py`."""

SHARE = 0.4
"""A publisher is measured for this part of a window: nothing that it does comes in lumps."""
PLAIN_SECONDS = 3.0
"""Where the plain consumers are measured once, for longer: their lumps are of seconds."""


def run(run: Run) -> None:
    """Needs Redis."""
    with contextlib.ExitStack() as stack:
        # they start while the servers do
        publishers = [stack.enter_context(Publisher(run, name)) for name in WAYS]
        _fan_out(run)
        _publish(run, publishers)


def _fan_out(run: Run) -> None:
    """As `fanout`, where the subscribers of a cell are spread over its servers."""
    with run.stations(run.setup.cluster()) as stations:
        run.say(f"{SUBSCRIBERS} subscribers, spread over the processes of {len(stations)} services")
        stations = [station for station in stations if _subscribe(run, station)]
        for window in WINDOWS:
            run.say(f"fan-out over processes, {window} publications outstanding")
            for number in range(run.rounds):
                for station in stations:
                    seconds = run.seconds
                    if window > PLAIN_WINDOW and station.name == TWO_PUBSUB:
                        if number:
                            continue
                        seconds = max(seconds, PLAIN_SECONDS)
                    with station.turn() as loader:
                        closed = partial(loader.closed, window, run.warm, seconds)
                        run.sample(f"cluster w{window}", station, closed)


def _subscribe(run: Run, station: Station) -> bool:
    with station.turn() as loader:
        try:
            loader.publication(SUBSCRIBERS, station.cell.script.publication)
            opened = loader.connect(SUBSCRIBERS)["opened"]
        except LoadError as error:
            run.results.note(f"{station.name}: {error}")
            return False
    if opened < SUBSCRIBERS:
        run.results.note(f"{station.name}: {opened:.0f} of {SUBSCRIBERS} could connect, left out")
        return False
    return True


class Publisher(Talker):
    """A process that publishes in one of the ways, when it is told to."""

    def __init__(self, run: Run, name: str) -> None:
        command = run.setup.publisher(WAYS[name])
        super().__init__(command.arguments, command.environment, command.directory)
        self.name = name

    def cpu_seconds(self) -> float:
        """CPU time so far."""
        return cpu_seconds(self.pid)

    def calls(self, warm: float, seconds: float) -> Figures:
        """Publish for so long."""
        return self._do(f"{warm} {seconds}", warm + seconds)


def _publish(run: Run, publishers: list[Publisher]) -> None:
    run.say("publishing from other processes")
    ready = []
    for publisher in publishers:  # the first call of each opens its connections
        try:
            publisher.calls(0.01, 0.01)
            ready.append(publisher)
        except LoadError as error:
            run.results.note(f"{publisher.name}: {error}")
    for _ in range(run.rounds):
        for publisher in ready:
            calls = partial(publisher.calls, run.warm * SHARE, run.seconds * SHARE)
            run.sample("publish", publisher, calls)
