"""Composition root: which node, or member, this process is, and what it is made of.

A process that serves clients has a node, made when serving begins: one per event loop, so
normally one. With a shared engine any other process, and any thread, is a member of its own: it
reaches the engine by blocking calls on pooled connections, and no event loop is made.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from realtime import __version__, tracing
from realtime.auth.keys import InvalidKey
from realtime.cluster.member import Member
from realtime.config import sources
from realtime.config.options import Config
from realtime.config.reader import InvalidOptions
from realtime.config.sources import Configuration
from realtime.engine import factory
from realtime.engine.factory import Engines, EnginesOfAKind
from realtime.errors import EngineUnavailable, InternalError, NotServing
from realtime.hooks.events import SiteEvents
from realtime.hooks.registry import Registry, registry
from realtime.hooks.runner import Connections, own_connections
from realtime.hooks.site import site_hooks
from realtime.node.node import Node
from realtime.operators.observer import NodeObserver
from realtime.server_api.arguments import Position
from realtime.server_api.durable import PendingRows, RowWriter
from realtime.server_api.node_apps import NodeApp
from realtime.server_api.online import OnlineUsers
from realtime.server_api.transactions import AfterCommit, Direct, Publisher

logger = logging.getLogger("realtime.asgi")

T = TypeVar("T")

Snapshot = Callable[[Sequence[str]], dict[str, Position | None] | None]
"""Returns channel → position as the transaction under way sees it; None where there is none."""

CALL_TIMEOUT = 10.0
"""Seconds a synchronous caller waits for the serving event loop."""


class Serving:
    """The service in one process. The one of this process is `serving`."""

    def __init__(
        self, configuration: Configuration, hooks: Registry, engines: Engines | None = None
    ) -> None:
        """
        Args:
            configuration: the options in force.
            hooks: the functions of the site.
            engines: makes the engines; None: as the options say.
        """
        self._configuration = configuration
        self._hooks = hooks
        self._engines = engines or Engines()
        self.call_timeout = CALL_TIMEOUT
        self.publisher: Publisher = Direct(self)
        """Sends what the site publishes. Tests put one here that records."""
        self.after_commit = AfterCommit(lambda: self.publisher)
        self.pending: PendingRows | None = None
        """Keeps durable publications, if the app `realtime.pending` is installed."""
        self.row_writer: RowWriter | None = None
        """Writes them: the same, unless tests put one here that records."""
        self.online: OnlineUsers | None = None
        """Finds users of the site, if the app `realtime.online` is installed."""
        self.apps: list[NodeApp] = []
        """More optional apps that work beside each node."""
        self.snapshot: Snapshot | None = None
        """Reads positions in a transaction of the site, if `realtime.database` is installed."""
        self._inherited: list[object] = []
        """Nodes and member of the parents, in a forked process."""
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        """Guards all of these, for they are used by every thread."""
        self._nodes: dict[asyncio.AbstractEventLoop, Node] = {}
        self._starting: dict[asyncio.AbstractEventLoop, asyncio.Task[Node]] = {}
        self._members: dict[float | None, Member] = {}
        """Timeout of calls in seconds, None for the usual one → what threads without a node use."""

    def begin_forked(self) -> None:
        """Begin as another member that serves no clients, in a process that was forked.

        The lock is new, for a thread of the parent may hold the old one. Nodes and member of the
        parent are kept: their end would close connections which the two processes share.
        """
        self._inherited.append((self._nodes, self._starting, self._members))
        self._begin()

    def config(self) -> Config:
        """Return the configuration in force.

        Raises:
            InvalidOptions: the options have mistakes.
        """
        return self._configuration.current()

    def readable_config(self) -> Config:
        """Return the configuration without the options that have mistakes."""
        return self._configuration.examine().config

    # nodes

    async def start(self, connections: Connections = own_connections) -> Node:
        """Return the node of the running loop; made and started at the first call.

        Args:
            connections: the database connections of hooks and receivers of signals.

        Raises:
            InvalidOptions, InvalidKey: the configuration has mistakes.
            RuntimeError: the hooks of the site are not loaded.
            Exception: the engine could not be started; the next call tries again.
        """
        loop = asyncio.get_running_loop()
        node = self._nodes.get(loop)
        if node is None:
            node = await asyncio.shield(self._attempt(loop, connections))
        return node

    def begin_start(self) -> None:
        """Begin to start the node of the running loop. Returns at once; a failure is ignored."""
        loop = asyncio.get_running_loop()
        if loop not in self._nodes:
            self._attempt(loop, own_connections)

    def _attempt(
        self, loop: asyncio.AbstractEventLoop, connections: Connections
    ) -> asyncio.Task[Node]:
        """Return the attempt to start that is under way, or begin one."""
        starting = self._starting.get(loop)
        if starting is None:
            starting = self._starting[loop] = loop.create_task(self._start(loop, connections))
            starting.add_done_callback(self._started)
        return starting

    def _started(self, starting: asyncio.Task[Node]) -> None:
        self._starting.pop(starting.get_loop(), None)
        if not starting.cancelled():
            starting.exception()  # its caller may have gone

    async def _start(self, loop: asyncio.AbstractEventLoop, connections: Connections) -> Node:
        if factory.is_dummy(self.config()):
            logger.warning(
                "The engine is dummy: publications of other processes go nowhere. It is for tests"
                " and scripts; leave the option engine empty where clients connect."
            )
        node = self._make_node(connections)
        await node.start()
        with self._lock:
            for closed in [other for other in self._nodes if other.is_closed()]:
                del self._nodes[closed]
            self._nodes[loop] = node
            for member in self._members.values():  # what they publish counts as this node's
                member.counters = node.counters
        if connections is own_connections:  # not the test kit's
            for app in self._apps():
                await app.start(node)
        return node

    def _apps(self) -> list[NodeApp]:
        """Return the optional apps, which work beside each node."""
        return [app for app in (self.pending, self.online, *self.apps) if app is not None]

    def _make_node(self, connections: Connections) -> Node:
        if not self._hooks.is_loaded:
            raise RuntimeError(
                'The hooks of the site are not loaded. Is "realtime" in INSTALLED_APPS?'
            )
        config = self.config()
        hooks = site_hooks(config, self._hooks, connections, tracing.spans())
        with self._lock:
            engine = self._engines.of(config).engine(config)
        return Node(
            config,
            engine,
            hooks,
            SiteEvents(connections),
            sources.observer_keys(),
            version=__version__,
            lists_users=self.online is not None,
            observe=NodeObserver,
        )

    def reason_of(self, error: Exception, timeout: float = 0) -> str | None:
        """Return why `start` failed, as a sentence; None if it takes a traceback to say it.

        Args:
            timeout: seconds that it was given; 0 for no limit.
        """
        if isinstance(error, TimeoutError) and (hosts := self._labels()):
            return f"no answer within {timeout:g} s from {self.server_name()} at {', '.join(hosts)}"
        if isinstance(error, EngineUnavailable | InvalidOptions | InvalidKey):
            return str(error)
        return None

    def server_name(self) -> str:
        """Return the name of the program that has the data of the engine; "" if there is none."""
        return factory.server_name(self.config())

    def _labels(self) -> list[str]:
        config = self.config()
        with self._lock:
            return self._engines.of(config).labels(config)

    def node(self) -> Node | None:
        """Return the node of the running loop, if it is started."""
        return self._nodes.get(asyncio.get_running_loop())

    def begin_stop(self) -> None:
        """Begin to close the clients of the running loop's node; `stop` completes it."""
        if (node := self._nodes.get(asyncio.get_event_loop())) is not None:
            node.begin_stop()

    def on_signal(self) -> None:
        """Begin to stop the running loop's node; at a second signal, close all clients at once."""
        if (node := self._nodes.get(asyncio.get_event_loop())) is not None:
            node.on_signal()

    async def drained(self) -> None:
        """Wait until the running loop's node has closed every client, if it drains."""
        node = self.node()
        if node is not None and node.is_draining:
            await node.drained()

    async def stop(self, *, process_ends: bool = False) -> None:
        """Stop the node of the running loop, if there is one. It is found until it has stopped.

        Args:
            process_ends: find it also afterwards, so that clients which still come are closed with
                3001, and start no other node for them.
        """
        loop = asyncio.get_running_loop()
        node = self._nodes.get(loop)
        if node is None:
            return
        node.begin_stop()
        try:
            await node.drained()
            apps = self._apps()  # they work until every client was closed
            for app in apps:
                app.begin_stop(node)
            await node.stop()
            for app in apps:
                await app.stop()
        finally:
            if not process_ends:
                with self._lock:
                    self._nodes.pop(loop, None)

    def serving_node(self) -> Node:
        """Return the node of this process, from any thread.

        Raises:
            NotServing: this process serves no clients.
        """
        with self._lock:
            for node in reversed(self._nodes.values()):
                if not node.loop.is_closed() and node.loop.is_running():
                    return node
        raise NotServing(
            "This process serves no clients, and the memory engine reaches no other process."
            " Call this in the process of the ASGI server, send the command to its /api, or name a"
            " Redis (SERVICE_REDIS_URL) or PostgreSQL (SERVICE_ENGINE=postgresql), which connects"
            " all processes. For tests and scripts that need not reach clients, set engine to"
            " dummy."
        )

    # work on the member that this process is

    def call(
        self,
        work: Callable[[Member], Awaitable[T]],
        *,
        async_name: str = "",
        timeout: float | None = None,
    ) -> T:
        """Run `work` for this process, from a thread that runs no event loop.

        Args:
            work: is called with the member that this process is.
            async_name: the function of `realtime` to await on an event loop, for the message.
            timeout: seconds to wait for the serving loop; with a shared engine, to connect and
                for each reply. None: as the options say.

        Raises:
            RuntimeError: called on an event loop, which this would block.
            InternalError: the serving loop did not answer in time.
            NotServing: with the memory engine, in a process that serves no clients.
            Exception: `work` raised it.
        """
        refuse_on_loop(async_name)
        config = self.config()
        if factory.is_shared(config) or self._is_alone(config):
            return self._run(work, config, timeout)
        future = _submit(self.serving_node(), work)
        try:
            return future.result(self.call_timeout if timeout is None else timeout)
        except FutureTimeout:
            if future.done():
                raise
            future.cancel()
            raise InternalError(message="the serving event loop did not answer in time") from None

    async def acall(
        self, work: Callable[[Member], Awaitable[T]], *, timeout: float | None = None
    ) -> T:
        """Run `work` for this process, from a coroutine of any loop. Async version of `call`.

        Args:
            timeout: of a thread that is used, where this loop has no node; see `call`.

        Raises:
            NotServing: with the memory engine, in a process that serves no clients.
            Exception: `work` raised it.
        """
        node = self.node()
        if node is not None:
            return await work(node)
        config = self.config()
        if factory.is_shared(config):
            return await asyncio.to_thread(self._run, work, config, timeout)
        if self._is_alone(config):
            return await work(self._blocking_member(config))
        return await asyncio.wrap_future(_submit(self.serving_node(), work))

    def _is_alone(self, config: Config) -> bool:
        """Return whether this process reaches no clients, and should not say so."""
        if not factory.is_dummy(config):
            return False
        try:
            self.serving_node()
        except NotServing:
            return True
        return False

    def _run(
        self, work: Callable[[Member], Awaitable[T]], config: Config, timeout: float | None
    ) -> T:
        """Run `work` with blocking calls, stepping its coroutine by hand."""
        return run_by_hand(work(self._blocking_member(config, timeout)))

    def _blocking_member(self, config: Config, timeout: float | None = None) -> Member:
        engines = self._engines.of(config)
        with self._lock:
            member = self._members.get(timeout)
            if member is None or member.config is not config:
                member = Member(config, engines.blocking_store(config, timeout))
                self._members[timeout] = member
                for node in self._nodes.values():
                    member.counters = node.counters
            return member

    def engines(self, config: Config) -> EnginesOfAKind:
        """Return what makes the engines that the options ask for, in this process."""
        with self._lock:
            return self._engines.of(config)


def refuse_on_loop(async_name: str = "") -> None:
    """Refuse to be called on an event loop. `async_name` as for `Serving.call`.

    Raises:
        RuntimeError: this thread runs an event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    hint = f"; await realtime.{async_name} there" if async_name else ""
    raise RuntimeError(
        "A synchronous function of realtime was called on an event loop, which it would"
        f" block{hint}."
    )


def run_by_hand(work: Awaitable[T]) -> T:
    """Return the result of work that never waits, in a thread without an event loop.

    Raises:
        RuntimeError: it waits for an event loop.
        Exception: the work raised it.
    """

    async def wait() -> T:
        return await work

    coroutine: Coroutine[Any, Any, T] = wait()
    try:
        while True:
            # None is what sleep(0) yields, to give other tasks a turn: there are none
            if coroutine.send(None) is not None:
                raise RuntimeError("a blocking call waits for an event loop")
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        coroutine.close()


def _submit(node: Node, work: Callable[[Member], Awaitable[T]]) -> Future[T]:
    async def run() -> T:
        return await work(node)

    return asyncio.run_coroutine_threadsafe(run(), node.loop)


serving = Serving(sources.configuration, registry)
"""The service in this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=serving.begin_forked)
