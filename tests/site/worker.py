"""A process that serves nobody: calls functions of `realtime` as its standard input tells it.

A line is {"way": one of `WAYS`, "function": name, "arguments": [...]}. It is answered by a
line {"result", "seconds"}, or {"error": class name, "code", "message", "seconds"}.

    python -m tests.site.worker
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

django.setup()

from asgiref.sync import async_to_sync, sync_to_async  # noqa: E402
from django.db import transaction  # noqa: E402
from django.dispatch import Signal  # noqa: E402

import realtime  # noqa: E402
from tests.site import outcomes  # noqa: E402

Result = dict[str, Any]

happened = Signal()


class Call:
    """The call that a line asks for."""

    def __init__(self, function: str, arguments: list[Any]) -> None:
        self._function = getattr(realtime, function)
        self._twin = getattr(realtime, f"a{function}")
        self._arguments = arguments

    def run(self) -> Any:
        """Call the function."""
        return self._function(*self._arguments)

    async def arun(self) -> Any:
        """Await its twin."""
        return await self._twin(*self._arguments)


def in_thread(call: Call) -> Any:
    """In a thread of its own."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call.run).result()


def in_thread_of_a_loop(call: Call) -> Any:
    """In a thread, called from a coroutine."""
    return asyncio.run(sync_to_async(call.run)())


def in_receiver(call: Call) -> Any:
    """In a receiver of a signal of Django."""
    results = []

    def receive(**_: Any) -> None:
        results.append(call.run())

    happened.connect(receive)
    try:
        happened.send(sender=None)
    finally:
        happened.disconnect(receive)
    return results[0]


def in_signal_handler(call: Call) -> Any:
    """In the handler of a signal of the operating system."""
    results = []
    before = signal.signal(signal.SIGUSR1, lambda *_: results.append(call.run()))
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    return results[0]


def on_commit(call: Call) -> Any:
    """When a transaction is committed."""
    results: list[Any] = []
    with transaction.atomic():
        transaction.on_commit(lambda: results.append(call.run()))
        assert results == []
    return results[0]


def in_forked_process(call: Call) -> Any:
    """In a child of this process, which has published before."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, json.dumps(answer(call.run)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        outcome = json.load(pipe)
    os.waitpid(child, 0)
    return Forwarded(outcome)


class Forwarded:
    """The answer that another process gave."""

    def __init__(self, outcome: Result) -> None:
        self.outcome = outcome


WAYS: dict[str, Callable[[Call], Any]] = {
    "call": Call.run,
    "thread": in_thread,
    "thread-of-a-loop": in_thread_of_a_loop,
    "receiver": in_receiver,
    "signal-handler": in_signal_handler,
    "on-commit": on_commit,
    "fork": in_forked_process,
    "asyncio-run": lambda call: asyncio.run(call.arun()),
    "async-to-sync": lambda call: async_to_sync(call.arun)(),
}


def answer(work: Callable[[], Any]) -> Result:
    """What to answer for a call."""
    began = time.monotonic()
    try:
        result = work()
    except Exception as error:
        outcome = {
            "error": type(error).__name__,
            "code": error.code if isinstance(error, realtime.Error) else None,
            "message": error.message if isinstance(error, realtime.Error) else str(error),
        }
    else:
        outcome = result.outcome if isinstance(result, Forwarded) else outcomes.of(result)
    return {**outcome, "seconds": time.monotonic() - began}


def main() -> None:
    """Do what standard input says, until it ends."""
    for line in sys.stdin:
        command = json.loads(line)
        call = Call(command["function"], command["arguments"])
        print(json.dumps(answer(lambda: WAYS[command["way"]](call))), flush=True)  # noqa: B023, T201


if __name__ == "__main__":
    main()
