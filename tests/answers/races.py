"""Races for the end of answers: `python -m tests.answers.races NUMBER SEED [OPTIONS AS JSON]`.

Of each answer, its producer, a stop button and a sweeper want to write the end at about the same
time. Some of them die before or after the step of the engine, or before the commit of the row; a
sweeper comes later. The answer must have one end in its channel, with nothing behind it, one row
that agrees with it, and one call of `answer_end` that was committed.

Without options: over the memory engine, with the rows in SQLite.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import django

directory = tempfile.TemporaryDirectory()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
os.environ.setdefault("TEST_APPS", "realtime.answers")
os.environ.setdefault("TEST_DATABASE", f"{directory.name}/site.sqlite3")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

import realtime  # noqa: E402
from realtime.answers import Stopped, answer, begin, forms, rows, stream  # noqa: E402
from realtime.answers.models import Answer, Status  # noqa: E402
from realtime.cluster.member import NewPublication  # noqa: E402
from realtime.config import sources  # noqa: E402
from realtime.hooks import answer_end  # noqa: E402
from realtime.hooks.runner import own_connections  # noqa: E402
from realtime.serving import serving  # noqa: E402

CHAT = {"name": "chat", "history_size": 100, "history_lifetime": 600}
FORMS = ("ui", "ag-ui", "events", "text")
AT_ONCE = 8
PAUSE = 0.1
"""Seconds within which all of them act."""


class Died(BaseException):
    """The process was killed here."""


class Points:
    """Where an actor dies; each thread has its own."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self.reached: Counter[str] = Counter()
        self._original_publish = stream.publish_one
        self._original_call = rows._call_hook
        stream.publish_one = self._publish_one
        rows._call_hook = self._call_hook

    def set(self, point: str) -> None:
        self._of_thread.point = point

    def _reach(self, point: str) -> None:
        if getattr(self._of_thread, "point", "") == point:
            self.reached[point] += 1
            self._of_thread.point = ""
            raise Died

    def _publish_one(self, new: NewPublication) -> bool:
        if new.tags:
            self._reach("before the engine")
        is_kept = self._original_publish(new)
        if new.tags:
            self._reach("after the engine")
        return is_kept

    def _call_hook(self, row: Answer) -> None:
        self._original_call(row)
        self._reach("before the commit")


POINTS = ("", "", "before the engine", "after the engine", "before the commit")

committed: Counter[str] = Counter()
"""Answer → calls of `answer_end` whose transaction was committed."""


@answer_end("chat:{pk}")
def ended(run: Answer) -> None:
    transaction.on_commit(lambda: committed.update([str(run.pk)]))


def produce(points: Points, chance: random.Random, row: Answer, point: str) -> list[Any]:
    """Write until it is time to end. Return what was written before."""
    written: list[Any] = []
    points.set(point)
    try:
        with answer(id=row.pk) as a:
            until = time.monotonic() + chance.uniform(0.3, 1) * PAUSE
            number = 0
            while time.monotonic() < until:
                number += 1
                if row.form == "events":
                    a.send(number)
                else:
                    a.write(f"{number} ")
                written.append(number)
                time.sleep(0.002)
    except Died:
        Answer.objects.filter(pk=row.pk).update(producer="")  # what the end of its lease means
    except Stopped:
        pass
    return written


def end(points: Points, chance: random.Random, row: Answer, status: str, point: str) -> None:
    """Stop, or sweep."""
    points.set(point)
    time.sleep(chance.uniform(0.2, 1) * PAUSE)
    with suppress(Died):
        rows.end(Answer.objects.get(pk=row.pk), status)


def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    with own_connections():
        try:
            return work(*arguments)
        finally:
            connection.close()


def race(pool: ThreadPoolExecutor, points: Points, seed: int) -> None:
    """One answer."""
    chance = random.Random(seed)
    row = in_thread(lambda: begin(f"chat:{seed}", form=chance.choice(FORMS)))
    dead = [chance.choice(POINTS) for _ in range(3)]
    producing = pool.submit(in_thread, produce, points, random.Random(seed), row, dead[0])
    others = [
        pool.submit(in_thread, end, points, random.Random(seed + index), row, status, dead[index])
        for index, status in ((1, Status.STOPPED), (2, Status.INTERRUPTED))
    ]
    written = producing.result()
    for other in others:
        other.result()
    in_thread(check, row, written)


def check(row: Answer, written: list[Any]) -> None:
    """Let the sweeper come, then compare channel, row and calls."""
    row.refresh_from_db()
    if not row.has_ended:
        row = rows.end(row, Status.INTERRUPTED)
    publications = realtime.history(row.own_channel)
    ends = [each for each in publications if "end" in each.get("tags", {})]
    top = realtime.position(row.own_channel).offset
    assert [each["offset"] for each in ends] == [top], (row, publications)
    assert ends[0]["tags"]["end"] == row.status, (row, ends)
    chunks = [
        chunk for each in publications for chunk in forms.chunks_of(row.of_form, each["data"])
    ]
    assert forms.joined(row.of_form, chunks) == row.chunks(), (row, chunks)
    have = row.parts if row.form == "events" else [int(word) for word in row.text.split()]
    assert have == written[: len(have)], (row, have, written)
    if row.status == Status.COMPLETE:
        assert have == written, (row, have, written)
    assert committed[str(row.pk)] == 1, (row, committed[str(row.pk)])


def serve() -> None:
    """Serve in a thread of its own, without the apps: sweeping is for the races."""
    ready = threading.Event()

    async def run() -> None:
        await serving.start(_connections)
        ready.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    assert ready.wait(20)


def _connections() -> Any:
    return own_connections()


def main() -> None:
    number, seed = int(sys.argv[1]), int(sys.argv[2])
    options = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    sources.configuration.override(namespaces=[CHAT], **options)
    call_command("migrate", verbosity=0)
    serve()
    points = Points()
    with ThreadPoolExecutor(3 * AT_ONCE) as pool, ThreadPoolExecutor(AT_ONCE) as racing:
        for done in [racing.submit(race, pool, points, seed + each) for each in range(number)]:
            done.result()
    statuses = Counter(Answer.objects.values_list("status", flat=True))
    found = {"races": number, "ends": statuses, "died": points.reached}
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
