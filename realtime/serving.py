"""The node of this process: made when serving begins, found by whoever wants to publish.

One node per event loop. A server has one loop, so there is normally one; tests may have
several, one after another.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

from realtime import conf
from realtime.errors import InternalError, NotServing
from realtime.node import Node

T = TypeVar("T")

CALL_TIMEOUT = 10.0
"""Seconds a synchronous caller waits for the serving event loop."""

_nodes: dict[asyncio.AbstractEventLoop, Node] = {}
_starting: dict[asyncio.AbstractEventLoop, asyncio.Task[Node]] = {}
_lock = threading.Lock()


async def start() -> Node:
    """The node of the running loop; made and started at the first call.

    Raises:
        InvalidOptions, InvalidKey: the configuration has mistakes.
        Exception: the engine could not be started; the next call tries again.
    """
    loop = asyncio.get_running_loop()
    node = _nodes.get(loop)
    if node is None:
        starting = _starting.get(loop)
        if starting is None:
            starting = _starting[loop] = loop.create_task(_start(loop))
            starting.add_done_callback(lambda _: _starting.pop(loop, None))
        node = await asyncio.shield(starting)
    return node


async def _start(loop: asyncio.AbstractEventLoop) -> Node:
    node = Node(conf.current())
    await node.start()
    with _lock:
        for closed in [other for other in _nodes if other.is_closed()]:
            del _nodes[closed]
        _nodes[loop] = node
    return node


def begin_stop() -> None:
    """Begin to close the clients of the running loop's node; `stop` sees it through."""
    node = _nodes.get(asyncio.get_event_loop())
    if node is not None:
        node.begin_stop()


async def stop() -> None:
    """Stop the node of the running loop, if there is one; until then it is found, stopping."""
    loop = asyncio.get_running_loop()
    node = _nodes.get(loop)
    if node is None:
        return
    try:
        await node.stop()
    finally:
        with _lock:
            _nodes.pop(loop, None)


def serving_node() -> Node:
    """The node of this process.

    Raises:
        NotServing: this process serves no clients.
    """
    with _lock:
        for node in reversed(_nodes.values()):
            if not node.loop.is_closed() and node.loop.is_running():
                return node
    raise NotServing(
        "This process serves no clients, and the memory engine reaches no other process."
        " Call this in the process of the ASGI server, or send the command to its /api."
    )


async def acall(work: Callable[[Node], Awaitable[T]]) -> T:
    """Run `work` on the node's loop, from a coroutine of any loop.

    Raises:
        NotServing, and whatever `work` raises.
    """
    node = serving_node()
    if asyncio.get_running_loop() is node.loop:
        return await work(node)
    return await asyncio.wrap_future(_submit(node, work))


def call(work: Callable[[Node], Awaitable[T]], *, twin: str = "") -> T:
    """Run `work` on the node's loop, from a thread that runs no event loop.

    `twin`: name of the coroutine function to use on an event loop, for the message.

    Raises:
        RuntimeError: called on an event loop, which this would block.
        InternalError: the serving loop did not answer in time.
        NotServing, and whatever `work` raises.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(
            "A synchronous function of realtime was called on an event loop, which it would"
            f" block{f'; await realtime.{twin} there' if twin else ''}."
        )
    future = _submit(serving_node(), work)
    try:
        return future.result(CALL_TIMEOUT)
    except FutureTimeout:
        if future.done():
            raise
        future.cancel()
        raise InternalError(message="the serving event loop did not answer in time") from None


def _submit(node: Node, work: Callable[[Node], Awaitable[T]]) -> Future[T]:
    async def run() -> T:
        return await work(node)

    return asyncio.run_coroutine_threadsafe(run(), node.loop)
