"""Finds the member of the service that this process is, for whoever wants to publish.

A process that serves clients has a node, made when serving begins: one per event loop, so
normally one. With a shared engine any other process, and any thread, is a member of its own:
it reaches Redis by blocking calls on pooled connections, and no event loop is made.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from realtime import __version__
from realtime.cluster.member import Member
from realtime.config import sources
from realtime.config.options import Config
from realtime.engine import factory
from realtime.errors import InternalError, NotServing
from realtime.hooks.events import Events
from realtime.hooks.registry import registry
from realtime.hooks.site import SiteHooks, wanted
from realtime.locks import ForkSafeLock
from realtime.node.node import Node

T = TypeVar("T")

CALL_TIMEOUT = 10.0
"""Seconds a synchronous caller waits for the serving event loop."""

_nodes: dict[asyncio.AbstractEventLoop, Node] = {}
_starting: dict[asyncio.AbstractEventLoop, asyncio.Task[Node]] = {}
_lock = ForkSafeLock()
_member: tuple[Config, Member] | None = None
"""Configuration, and the member this process is besides its nodes."""
_inherited: list[object] = []
"""What a forked process had from its parent."""


async def start() -> Node:
    """The node of the running loop; made and started at the first call.

    Raises:
        InvalidOptions, InvalidKey: the configuration has mistakes.
        Exception: the engine could not be started; the next call tries again.
    """
    loop = asyncio.get_running_loop()
    node = _nodes.get(loop)
    if node is None:
        node = await asyncio.shield(_attempt(loop))
    return node


def begin_start() -> None:
    """Begin what `start` does; returns at once, and says nothing of a failure."""
    loop = asyncio.get_running_loop()
    if loop not in _nodes:
        _attempt(loop)


def _attempt(loop: asyncio.AbstractEventLoop) -> asyncio.Task[Node]:
    """The attempt to start that is under way, or a new one."""
    starting = _starting.get(loop)
    if starting is None:
        starting = _starting[loop] = loop.create_task(_start(loop))
        starting.add_done_callback(_started)
    return starting


def node() -> Node | None:
    """The node of the running loop, if it is started."""
    return _nodes.get(asyncio.get_running_loop())


def _started(starting: asyncio.Task[Node]) -> None:
    _starting.pop(starting.get_loop(), None)
    if not starting.cancelled():
        starting.exception()  # nobody may be waiting any more


async def _start(loop: asyncio.AbstractEventLoop) -> Node:
    config = sources.current()
    hooks = SiteHooks(config, registry) if wanted(config, registry) else None
    node = Node(
        config,
        factory.engine(config),
        hooks,
        Events(),
        sources.observer_keys(),
        version=__version__,
    )
    await node.start()
    with _lock:
        for closed in [other for other in _nodes if other.is_closed()]:
            del _nodes[closed]
        _nodes[loop] = node
        if _member is not None:  # what other threads publish is this node's
            _member[1].tally = node.tally
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
        " Call this in the process of the ASGI server, send the command to its /api, or name a"
        " Redis (SERVICE_REDIS_URL), which connects all processes."
    )


async def acall(work: Callable[[Member], Awaitable[T]]) -> T:
    """Run `work` for this process, from a coroutine of any loop.

    Raises:
        NotServing: with the memory engine, in a process that serves no clients.
        Exception: whatever `work` raises.
    """
    node = _nodes.get(asyncio.get_running_loop())
    if node is not None:
        return await work(node)
    config = sources.current()
    if factory.is_shared(config):
        return await asyncio.to_thread(_run, work, config)
    return await asyncio.wrap_future(_submit(serving_node(), work))


def call(work: Callable[[Member], Awaitable[T]], *, twin: str = "") -> T:
    """Run `work` for this process, from a thread that runs no event loop.

    `twin`: name of the coroutine function to use on an event loop, for the message.

    Raises:
        RuntimeError: called on an event loop, which this would block.
        InternalError: the serving loop did not answer in time.
        NotServing: with the memory engine, in a process that serves no clients.
        Exception: whatever `work` raises.
    """
    refuse_on_loop(twin)
    config = sources.current()
    if factory.is_shared(config):
        return _run(work, config)
    future = _submit(serving_node(), work)
    try:
        return future.result(CALL_TIMEOUT)
    except FutureTimeout:
        if future.done():
            raise
        future.cancel()
        raise InternalError(message="the serving event loop did not answer in time") from None


def refuse_on_loop(twin: str = "") -> None:
    """Refuse to be called on an event loop. `twin` as for `call`.

    Raises:
        RuntimeError: there is one.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "A synchronous function of realtime was called on an event loop, which it would"
        f" block{f'; await realtime.{twin} there' if twin else ''}."
    )


def _submit(node: Node, work: Callable[[Member], Awaitable[T]]) -> Future[T]:
    async def run() -> T:
        return await work(node)

    return asyncio.run_coroutine_threadsafe(run(), node.loop)


def _run(work: Callable[[Member], Awaitable[T]], config: Config) -> T:
    """Run `work` with blocking calls, stepping its coroutine by hand."""

    async def run() -> T:
        return await work(_blocking_member(config))

    coroutine: Coroutine[Any, Any, T] = run()
    try:
        while True:
            # None is what sleep(0) gives, to let others have a turn: there are none
            if coroutine.send(None) is not None:
                raise RuntimeError("a blocking call waits for an event loop")
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        coroutine.close()


def _blocking_member(config: Config) -> Member:
    """The member this process is."""
    global _member
    with _lock:
        if _member is None or _member[0] is not config:
            _member = config, Member(config, factory.blocking_store(config))
            for node in _nodes.values():
                _member[1].tally = node.tally
        return _member[1]


def _begin_forked() -> None:
    """A forked process is another member and serves nobody.

    What it had from its parent is kept: the end of a node would be felt by its connections,
    which the two processes share.
    """
    global _member, _nodes, _starting
    _inherited.append((_member, _nodes, _starting))
    _member, _nodes, _starting = None, {}, {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_forked)


THRESHOLDS = (50_000, 50, 1_000)


def settle() -> None:
    """Call once, when the application is loaded. Affects the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
