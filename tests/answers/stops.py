"""How soon a producer stops: `python -m tests.answers.stops [NUMBER]`.

Over Redis, answers are stopped from elsewhere while they write 60 times a second, and others while
their models are silent, `AT_ONCE` at once. Prints the milliseconds from the call of `end` until the
producer knows.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.redis_server import RedisServer

AT_ONCE = 10
"""Few enough to leave the processor idle, so that a stop does not wait for another."""


def measure(number: int) -> dict[str, dict[str, int]]:
    from django.db import connection

    from realtime.answers import answer, begin, end

    def stop(chat: str, *, is_silent: bool) -> float:
        row, out, writes = begin(chat, form="text"), [0.0], threading.Event()

        def produce() -> None:
            with answer(id=row.pk) as a:
                a.write("begin ")
                writes.set()
                while not a.stopped:
                    time.sleep(0.001 if is_silent else 1 / 60)
                    if not is_silent and not a.stopped:
                        a.write("more ")
                out[0] = time.time()
            connection.close()

        thread = threading.Thread(target=produce)
        thread.start()
        writes.wait()
        time.sleep(0.1 + random.random())
        before = time.time()
        end(row, "stopped")
        thread.join()
        connection.close()
        return (out[0] or time.time()) - before

    found = {}
    for kind in ("flowing", "silent"):
        one = partial(stop, is_silent=kind == "silent")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            times = sorted(pool.map(one, (f"chat:{kind}{n}" for n in range(number))))
        p99 = times[int(number * 0.99) - 1]
        found[kind] = {"p50": round(times[number // 2] * 1e3), "p99": round(p99 * 1e3)}
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        redis = RedisServer(Path(directory)).start()
        os.environ.update(
            DJANGO_SETTINGS_MODULE="tests.settings",
            TEST_APPS="realtime.answers",
            TEST_DATABASE=f"{directory}/site.sqlite3",
            SERVICE_REDIS_URL=redis.url,
            SERVICE_NAMESPACES='[{"name": "chat"}]',
        )
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0, skip_checks=True)
        print(json.dumps(measure(int((sys.argv[1:] or ["100"])[0]))))  # noqa: T201
        redis.kill()


if __name__ == "__main__":
    main()
