"""A process of the chaos: `python -m tests.pending.actor ROLE JSON`.

    publish  commits numbered publications, rolls some back, dies between COMMIT and wake-up
    pace     commits at a rate, and prints when each commit was over
    commit   commits the publications of each line that it reads, and prints a line then
    relay    relays without serving anybody, dies between publishing rows and deleting them
    read     prints what the streams hold

The number of a publication is that of a row which the transaction locks: so a committed number has
one publication, and writers of a channel wait for each other.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from typing import Any

import django

django.setup()

from django.db import DatabaseError, connection, transaction  # noqa: E402

import realtime  # noqa: E402
from realtime.pending.relay import RelayThread  # noqa: E402
from realtime.pending.wake_ups import WakeUps  # noqa: E402
from realtime.pending.within import _HeldRinger  # noqa: E402
from realtime.redis import blocking  # noqa: E402
from realtime.server_api.durable import RelayCounters  # noqa: E402
from realtime.serving import serving  # noqa: E402

ROLLED_BACK = 0.1
"""Share of the transactions."""


class RolledBack(Exception):
    """The transaction is not to be committed."""


def die_sometimes(kind: Any, method: str, chance: float, surely_at: int) -> None:
    """Have a process killed where it enters a method or function, now and then.

    Args:
        kind: the class or module that has it.
        surely_at: how often it enters until it is killed in any case; 0: never so.
    """
    original, entries = getattr(kind, method), itertools.count(1)

    def enter(*arguments: Any) -> Any:
        if next(entries) == surely_at or random.random() < chance:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments)

    setattr(kind, method, enter)


def commit_next(channel: str) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            lock = "" if connection.vendor == "sqlite" else " FOR UPDATE"
            cursor.execute(f"SELECT n FROM numbers WHERE channel = %s{lock}", [channel])
            number = cursor.fetchone()[0] + 1
            cursor.execute("UPDATE numbers SET n = %s WHERE channel = %s", [number, channel])
        realtime.publish(channel, number, durable=True)
        if random.random() < ROLLED_BACK:
            raise RolledBack


def publish(channels: list[str], count: int, deaths: float, surely_at: int) -> None:
    die_sometimes(WakeUps, "send", deaths, surely_at)
    committed = 0
    while committed < count:
        try:
            commit_next(random.choice(channels))
            committed += 1
        except RolledBack:
            pass
        except DatabaseError:  # it is restarted
            connection.close()
            time.sleep(0.05)


def pace(
    channels: list[str], rate: float, seconds: float, together: int = 1, direct_every: int = 0
) -> None:
    """Commit in equal steps of time; what comes late is made up for.

    Args:
        rate: durable publications a second.
        together: how many of them share a transaction.
        direct_every: durable publications for each direct one; 0: none is direct.
    """
    over: dict[str, float] = {}
    steps = int(rate * seconds / together)
    began = time.monotonic()
    for step in range(steps):
        time.sleep(max(0.0, began + step * together / rate - time.monotonic()))
        channel = channels[step % len(channels)]
        _commit(channel, [f"durable {os.getpid()} {step} {each}" for each in range(together)], over)
        if direct_every and step % direct_every == 0:
            time.sleep(max(0.0, began + (step + 0.5) * together / rate - time.monotonic()))
            _commit(channel, [f"direct {os.getpid()} {step}"], over)
    print(json.dumps(over))  # noqa: T201


def _commit(channel: str, names: list[str], over: dict[str, float]) -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: over.update(dict.fromkeys(names, time.time())))
        for name in names:
            realtime.publish(channel, name, durable=name.startswith("durable"))


def commit() -> None:
    for line in sys.stdin:
        publications = json.loads(line)
        with transaction.atomic():
            realtime.publish_many(publications, durable=True)
        say("committed")


MOMENTS = {
    "before": (RelayThread, "_publish"),
    "during": (blocking, "_read"),  # what is published has left, and no reply has been read
    "after": (RelayThread, "_settle"),
    "within": (_HeldRinger, "ring"),  # published, deleted, and not committed
    "committed": (RelayThread, "_ring"),
}
"""Where a relay dies: before, while or after it publishes rows; in and after a transaction with
streams."""


def relay(deaths: float, surely_at: int, at: str = "after") -> None:
    die_sometimes(*MOMENTS[at], deaths, surely_at)
    say("relays")
    RelayThread(serving, RelayCounters()).run()


def say(word: str) -> None:
    print(word, flush=True)  # noqa: T201


def read(channels: list[str]) -> None:
    streams = {
        channel: [publication["data"] for publication in realtime.history(channel)]
        for channel in channels
    }
    print(json.dumps(streams))  # noqa: T201


if __name__ == "__main__":
    roles: dict[str, Any] = {"publish": publish, "pace": pace, "commit": commit}
    roles |= {"relay": relay, "read": read}
    roles[sys.argv[1]](**json.loads(sys.argv[2]))
