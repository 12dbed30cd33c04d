"""Health: whether this process is alive, and whether it is ready for clients.

Alive: the event loop turns. Ready: the node has started, takes clients, and its engine answers in
time. A process that is not ready keeps its clients, and must not be restarted for that.

However many ask, the engine is asked one question at a time, and the answer counts for a second.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

from realtime.config.reader import InvalidOptions
from realtime.engine.nodes import Cluster
from realtime.errors import EngineUnavailable, InternalError, NotServing
from realtime.node.node import Node
from realtime.server_api import operations
from realtime.serving import Serving, serving

ENGINE_TIMEOUT = 1.0
"""Seconds that the engine may take to answer."""
REMEMBERED = 1.0
"""Seconds for which an answer counts."""
LOOP_TIMEOUT = 2.0
"""Seconds that the event loop of the node may take to answer another thread."""


class Readiness:
    """Whether a node is ready. Belongs to one event loop."""

    def __init__(self) -> None:
        self._node: Node | None = None
        self._answer: asyncio.Task[bool] | None = None
        self._answered_at = 0.0

    async def of(self, node: Node) -> bool:
        """Return whether a node is ready."""
        if node.is_draining:
            return False
        if node.cluster is None:
            return True
        if self._node is not node or self._is_old(node):
            self._node = node
            self._answer = node.loop.create_task(self._ask(node, node.cluster))
        assert self._answer is not None
        answers = await asyncio.shield(self._answer)
        return answers and not node.is_draining

    def _is_old(self, node: Node) -> bool:
        if self._answer is None or not self._answer.done():
            return self._answer is None
        return self._answer.cancelled() or node.loop.time() - self._answered_at >= REMEMBERED

    async def _ask(self, node: Node, cluster: Cluster) -> bool:
        try:
            async with asyncio.timeout(ENGINE_TIMEOUT):
                await cluster.round_trip()
        except (EngineUnavailable, TimeoutError):
            return False
        finally:
            self._answered_at = node.loop.time()
        return True


class MemberReadiness:
    """Whether a process that serves no clients reaches its engine. For threads that may wait."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._lock = threading.Lock()
        self._is_ready = False
        self._until = 0.0

    def get(self) -> bool:
        """Return whether it does."""
        # not for ever: a process that was forked at a bad moment has a lock that stays locked
        if not self._lock.acquire(timeout=LOOP_TIMEOUT):
            return False
        try:
            if time.monotonic() >= self._until:
                self._is_ready = self._ask()
                self._until = time.monotonic() + REMEMBERED
            return self._is_ready
        finally:
            self._lock.release()

    def _ask(self) -> bool:
        try:
            self._serving.call(operations.round_trip, timeout=ENGINE_TIMEOUT)
        except (EngineUnavailable, NotServing, InternalError):
            return False
        return True


_readiness = Readiness()
_of_member = MemberReadiness(serving)


async def is_ready(node: Node | None) -> bool:
    """Return whether a node of the running loop is ready; None is not."""
    return node is not None and await _readiness.of(node)


async def is_process_ready() -> bool:
    """Return whether this process is ready, from any event loop."""
    if (node := serving.node()) is not None:
        return await is_ready(node)
    try:
        node = serving.serving_node()
    except NotServing:
        try:
            return await asyncio.to_thread(_of_member.get)
        except InvalidOptions:
            return False
    return await _from(node, is_ready(node))


async def is_process_alive() -> bool:
    """Return whether the event loop of this process turns, from any event loop."""
    try:
        node = serving.serving_node()
    except NotServing:
        return True
    return node is serving.node() or await _from(node, asyncio.sleep(0, True))


async def _from(node: Node, asking: Coroutine[Any, Any, bool]) -> bool:
    """Ask on the event loop of a node; False if it does not answer in time."""
    answer: Future[bool] = asyncio.run_coroutine_threadsafe(asking, node.loop)
    try:
        async with asyncio.timeout(LOOP_TIMEOUT):
            return await asyncio.wrap_future(answer)
    except TimeoutError:
        return False
