"""What the past of a node costs: `python -m tests.live.monitoring.past_costs`.

The worst case: every close code and every kind of event as often as it is kept, with texts of full
length. Prints bytes as `tracemalloc` counts them, and CPU seconds of one sample and of one answer.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
import tracemalloc

from realtime.cluster.survey import encode_answer
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.operators.event_log import KEPT_OF_A_KIND, KINDS, MAX_TEXT, TOGETHER
from realtime.operators.observer import NodeObserver
from realtime.operators.questions import SLOT_SECONDS
from realtime.operators.recorder import NodeRecorder
from realtime.operators.samples import KEPT, MAX_CODES

ROUNDS = 200


def recorder_of(node: Node) -> NodeRecorder:
    assert isinstance(node.observer, NodeObserver)
    return node.observer.recorder


def fill(node: Node, worst: bool) -> None:
    """Give a node an hour of samples, and events."""
    past, now = recorder_of(node), time.time()
    codes = MAX_CODES + 10 if worst else 3
    for number in range(KEPT + 1):
        node.counters.published_by_server += 1000 + number
        for code in range(codes):
            node.counters.disconnects.add(str(4000 + code))
        past.samples.add(now + number * SLOT_SECONDS, past._read())
    for kind in KINDS:
        for number in range(KEPT_OF_A_KIND if worst else 3):
            text = f"{number} ".ljust(MAX_TEXT, "x") if worst else f"web-{number}"
            past.events.add(kind, text, subject=text[:36], at=now + number * TOGETHER)


def cpu_of(work: object, rounds: int = ROUNDS) -> float:
    """Return the CPU seconds of one call."""
    assert callable(work)
    began = time.process_time()
    for _ in range(rounds):
        work()
    return (time.process_time() - began) / rounds


async def measure(worst: bool) -> None:
    """Print the costs of one node."""
    node = Node(load({}), observe=NodeObserver)
    past = recorder_of(node)
    await node.start()
    for number in range(200):
        node.counters.disconnects.add(str(4000 + number))  # a full tally
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    fill(node, worst)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    moment = time.time() + (KEPT + 1) * SLOT_SECONDS
    times = iter(range(ROUNDS + 1))
    sample = cpu_of(lambda: past.samples.add(moment + next(times) * 10, past._read()))
    answer = cpu_of(lambda: encode_answer(past.answer()), 20)
    size = len(encode_answer(past.answer()))
    await node.stop()
    sys.stdout.write(
        f"{'worst case' if worst else 'usual'}: {kept / 1024:.0f} KiB kept;"
        f" a sample takes {sample * 1e6:.0f} us, so {sample / SLOT_SECONDS * 100:.4f} % of a core;"
        f" an answer takes {answer * 1e3:.1f} ms and has {size / 1024:.0f} KiB\n"
    )


def main() -> None:
    """Measure both."""
    logging.disable(logging.CRITICAL)
    for worst in (False, True):
        asyncio.run(measure(worst))


if __name__ == "__main__":
    main()
