"""The ready site as it is after an hour of load: its node has samples and events of that hour.

The hour has a pause in which the node was stopped, an interruption of Redis, many connections that
ended at once, and a late event loop.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

from messaging_project.asgi import application as site
from realtime.node.node import Node
from realtime.operators.observer import NodeObserver
from realtime.operators.questions import SLOT_SECONDS
from realtime.operators.samples import KEPT, Reading
from realtime.serving import serving

PUBLISHED = int(os.environ.get("PAST_PUBLISHED", "40"))
"""Publications in a second, on average; they come in waves."""
CONNECTIONS = int(os.environ.get("PAST_CONNECTIONS", "300"))
STOPPED = range(60, 75)
"""Samples that were not taken, counted from the beginning of the hour."""
LOST = 200
"""The sample in which Redis was lost, and the connections ended."""
REASON = "Redis pub/sub was lost: 10.0.0.7:6379: no answer; publications wait"

_filled: set[Node] = set()


def fill(node: Node) -> None:
    """Give a node its hour."""
    now = time.time()
    began = (int(now) // SLOT_SECONDS - KEPT) * SLOT_SECONDS + 0.05
    assert isinstance(node.observer, NodeObserver)
    recorder = node.observer.recorder
    samples = recorder.samples
    recorder.started = began
    totals = dict.fromkeys(("published", "delivered", "opened", "errors", "cpu", "closed:0"), 0)
    totals |= {"closed:3010": 0, "closed:3008": 0, "refused": 0}
    samples.begin(began, Reading({}, dict(totals)))
    for number in range(1, KEPT + 1):
        wave = 1 + 0.6 * math.sin(number / 23) + 0.2 * math.sin(number / 3)
        totals["published"] += round(PUBLISHED * SLOT_SECONDS * wave)
        totals["delivered"] += round(PUBLISHED * SLOT_SECONDS * wave * 12)
        totals["cpu"] += round(SLOT_SECONDS * 180_000 * wave)
        totals["opened"] += 3
        totals["closed:0"] += 3
        totals["errors"] += number % 9 == 0
        connections = round(CONNECTIONS * (1 + 0.13 * math.sin(number / 60)))
        if number == LOST:
            totals["closed:3010"] += connections
            totals["refused"] += CONNECTIONS // 2
        if LOST < number <= LOST + 12:
            totals["opened"] += connections // 12
            connections = connections * (number - LOST) // 12
        if number in STOPPED:
            continue
        states = {
            "connections": connections,
            "users": connections * 3 // 4,
            "channels": 60,
            "subscriptions": connections * 4,
            "lag": 800_000 if number == 310 else 4_000 + 3_000 * (number % 7),
            "redis": 900,
            "memory": 90_000 + 20 * number,
        }
        samples.add(began + number * SLOT_SECONDS, Reading(states, dict(totals)))
    add = recorder.events.add

    def at(number: int) -> float:
        return began + number * SLOT_SECONDS

    add("redis_away", at=at(LOST) - 3)
    add("warning", REASON, at=at(LOST) - 3)
    add("mass_disconnect", number=CONNECTIONS, at=at(LOST))
    add("refused", number=CONNECTIONS // 2, at=at(LOST))
    add("redis_back", at=at(LOST) + 14)
    add("late_loop", number=800, at=at(310))
    add("blocked", "mallory", subject="mallory", at=at(330))
    recorder.sample_from_now()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Serve the site; with the first request its node has its hour."""
    node = serving.node()
    if node is not None and node not in _filled:
        _filled.add(node)
        fill(node)
    await site(scope, receive, send)
