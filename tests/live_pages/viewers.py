"""Viewers of live lists, cut off and served by processes that are killed.

    python -m tests.live_pages.viewers [--viewers 100] [--rows 1000] [--rate 50] [--seconds 120] \
        [--seed 1] [--kept 500] [--feed | --durable] [--losses]

Two processes serve a copy of the to-do example with one Redis, and one changes its list. With
--feed the list is one of a live model, and two processes change the same rows at once. With
--durable there are two, publications are durable, and half of the viewers see the list whose
changes views publish, the others that of the live model. The viewers are frames of a real browser,
each with a connection and a document of its own.

Every few seconds something fails; see `faults`. After every minute the writers rest, and when
all processes run again, every list must be equal to a fresh rendering. With --durable each
frame must be given each version of a row, in order; see `frames`. With --losses
direct publications are lost, too, and lists that differ must be right when they are loaded. One
more frame has no JavaScript: its list must differ, or nothing was tried. Prints a line for each
round, and a report.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.browser import browsing
from tests.live_pages.faults import Faults
from tests.live_pages.frames import Frames, Look, opened
from tests.live_pages.site import Site
from tests.redis_server import RedisServer

ROUND = 60.0
"""Seconds after which the writers rest."""
PAUSES = (1.0, 5.0)
"""Seconds between the beginnings of two faults."""
SETTLE_TIMEOUT = 240.0
"""Seconds in which all lists must be right after the last change."""
PATIENCE = 20.0
"""Seconds after which a list that may have lost something is loaded."""
PLAIN = "/"
FEED = "/?list=todo:feed"


@dataclass
class Report:
    """What came of a run."""

    seed: int
    viewers: int
    look: Look = field(default_factory=Look)
    """The last one."""
    rounds: int = 0
    changes: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    differences: list[object] = field(default_factory=list)
    """Frames that were wrong after a round, and versions that were wrong."""
    settled: float = 0.0
    """The longest time from the last change of a round until all lists were right."""
    lost: int = 0
    """Frames that differed where direct publications may be lost."""
    pending: int = 0
    """Durable publications that were not published in that time."""
    tracebacks: list[str] = field(default_factory=list)
    """What servers logged."""
    memory: list[int] = field(default_factory=list)
    """Megabytes of the browser after each round, without garbage."""
    minutes: float = 0.0


async def settled(
    frames: Frames, site: Site, timeout: float = SETTLE_TIMEOUT
) -> tuple[Look, float]:
    """Wait until all lists are right; return how long it took."""
    began = time.monotonic()
    while True:
        look = await frames.look()
        seconds = time.monotonic() - began
        is_right = not look.wrong and not look.errors and not site.pending()
        if is_right or look.mistakes or seconds > timeout:
            return look, seconds
        await asyncio.sleep(0.2)


async def play_round(
    frames: Frames, site: Site, faults: Faults, report: Report, seconds: float
) -> None:
    """Change rows while processes fail, then judge."""
    report.rounds += 1
    until = time.monotonic() + seconds
    site.begin_writing(seconds, seed=1000 * report.seed + report.rounds)
    await faults.play(until, PAUSES)
    await asyncio.to_thread(site.finish_writing)
    if faults.losses:
        look, _ = await settled(frames, site, PATIENCE)
        report.lost += len(look.wrong)
        if look.wrong:
            await frames.load()
    report.look, took = await settled(frames, site)
    report.settled = max(report.settled, round(took, 1))
    report.pending = site.pending()
    report.changes = site.changes
    report.faults = dict(sorted(faults.counts.items()))
    report.differences += report.look.wrong + report.look.mistakes + report.look.errors
    report.tracebacks = site.tracebacks


def memory_of_browser(profile: Path) -> int:
    """Return the megabytes of the processes of the browser; shared ones are shared out."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if str(profile).encode() in (process / "cmdline").read_bytes():
                sizes = (process / "smaps_rollup").read_text()
                total += int(sizes.partition("Pss:")[2].split()[0])
    return total // 1024


async def run(directory: Path, options: argparse.Namespace) -> Report:
    """Have the viewers look at their lists for so many seconds."""
    report = Report(options.seed, options.viewers)
    redis = RedisServer(directory / "redis", persistent=True).start()
    site = await asyncio.to_thread(
        Site,
        directory,
        redis,
        rows=options.rows,
        kept=options.kept,
        rate=options.rate,
        feed=options.feed or options.durable,
        durable=options.durable,
    )
    pages = [PLAIN, FEED] if options.durable else [FEED if options.feed else PLAIN]
    try:
        with browsing(directory / "profile") as browser:
            viewing = opened(browser, site.ports, options.viewers, pages, watched=options.durable)
            async with viewing as (frames, proxies):
                say(f"seed {options.seed}: all viewers have the page")
                faults = Faults(site, proxies, random.Random(options.seed), losses=options.losses)
                began = time.monotonic()
                while (left := began + options.seconds - time.monotonic()) > 5:
                    if report.differences:
                        break
                    await play_round(frames, site, faults, report, min(ROUND, left))
                    report.minutes = round((time.monotonic() - began) / 60, 1)
                    await frames.collect_garbage()
                    report.memory.append(memory_of_browser(directory))
                    say(line(report))
                return report
    finally:
        site.stop()
        redis.stop()


def line(report: Report) -> str:
    """Return what is known after a round."""
    look = report.look
    return (
        f"{report.minutes} min, round {report.rounds}: {report.changes} changes,"
        f" {sum(report.faults.values())} faults, {look.rows} rows, {look.swaps} swaps,"
        f" {look.resets} resets, {len(report.differences)} differences, {report.pending} pending,"
        f" settled in at most {report.settled} s, {report.memory[-1]} MB"
    )


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=50, help="changes per second")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kept", type=int, default=500, help="publications of the history")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--feed", action="store_true", help="a live model, and two writers")
    kind.add_argument("--durable", action="store_true", help="both lists, durable publications")
    parser.add_argument("--losses", action="store_true", help="lose direct publications")
    with tempfile.TemporaryDirectory() as directory:
        report = asyncio.run(run(Path(directory), parser.parse_args()))
    fields = report.__dict__ | {"look": report.look.__dict__}
    say(json.dumps(fields, indent=2))
    is_tried = report.look.plain_differs and report.look.resets > 0
    return 0 if is_tried and not report.differences and not report.pending else 1


if __name__ == "__main__":
    sys.exit(main())
