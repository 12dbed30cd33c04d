"""The service of one test: the real one, with the memory engine, in a thread of its own.

`publish`, `presence`, `disconnect` and the other functions reach it from every thread and from
every event loop, as they reach the process of a server.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.core.signals import setting_changed

from realtime.config import sources
from realtime.config.reader import InvalidOptions
from realtime.hooks.runner import Connections
from realtime.node.node import Node
from realtime.serving import serving
from realtime.testing.clients import TestClient
from realtime.testing.credentials import Credentials
from realtime.testing.databases import Databases
from realtime.testing.outbox import recorder
from realtime.testing.transactions import CommitHooks

T = TypeVar("T")

RECEIVERS_TIMEOUT = 10.0
"""Seconds to wait until receivers of signals were called."""

_SETTINGS = ("REALTIME", "REALTIME_DEFAULTS", "REALTIME_ENV_PREFIX", "REALTIME_CONFIG_FILE")


class TestService:
    """A running service, between `start` and `stop`, or in `with` or `async with`.

    It has the options in force, but always the memory engine; if no key for tokens is set, it
    sets one. Changed settings restart it: its clients are closed with 3001, and histories are
    empty.
    """

    __test__ = False  # for pytest

    def __init__(self) -> None:
        self.databases = Databases()
        self._thread: _Thread | None = None
        self._hooks: CommitHooks | None = None

    # life

    def start(self) -> None:
        """Start serving.

        Raises:
            InvalidOptions: the options have mistakes.
        """
        self._hooks = CommitHooks()
        self.databases.share()
        recorder.begin_service(self)
        setting_changed.connect(self._changed)
        try:
            self._serve()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Close every client, and stop serving."""
        setting_changed.disconnect(self._changed)
        self._end()
        sources.configuration.override()
        recorder.end_service(self)
        self.databases.release()
        self._hooks = None

    def _serve(self) -> _Thread:
        if self._thread is None:
            sources.configuration.override(engine="memory", channel_layer="")
            if not sources.current().connection_tokens.hmac_secret_key:
                sources.configuration.override(
                    engine="memory",
                    channel_layer="",
                    token_hmac_secret_key=secrets.token_urlsafe(32),
                )
            self._thread = _Thread(self.databases.use)
        return self._thread

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def _changed(self, *, setting: str, **_: object) -> None:
        if setting not in _SETTINGS:
            return
        self._end()
        sources.configuration.override()
        with suppress(InvalidOptions):  # the next caller gets it
            self._serve()

    def __enter__(self) -> TestService:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> TestService:
        await sync_to_async(self.start)()
        return self

    async def __aexit__(self, *_: object) -> None:
        await sync_to_async(self.stop)()

    # clients

    def client(
        self,
        user: Any = None,
        *,
        token: str | Callable[[], str] = "",
        info: object = None,
        channels: Iterable[str] = (),
        cookies: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        data: object = None,
    ) -> TestClient:
        """Return a client that is not connected yet; see `TestClient`.

        Args:
            user: a Django user, or a user ID; the client connects with a token made for it.
            info, channels: further claims of that token, as in `tokens.connection_token`.
            token: a token of the site, or a function that is called for one at every connect.
            cookies: of the handshake: a mapping, or `cookies` of Django's test client, which is
                read at every connect.
            headers: of the handshake, such as `origin`.
            data: goes to the connect hook.

        Without user and token the client connects without a token, if the options or the
        connect hook allow it.
        """
        credentials = Credentials(
            user,
            token=token,
            info=info,
            channels=channels,
            cookies=cookies,
            headers=headers,
        )
        return TestClient(self, credentials, data)

    # for clients

    @property
    def node(self) -> Node:
        """The node that serves. Belongs to the event loop of the service."""
        return self._serve().node

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in the service and wait, from a thread without a loop."""
        return self._submit(work).result()

    async def arun(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in the service. Async version of `run`."""
        # in the thread in which the test uses the database
        future = await sync_to_async(self._submit)(work)
        return await asyncio.wrap_future(future)

    def _submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        if self._hooks is None:
            raise RuntimeError("the service of this client is not running: call start() first")
        thread = self._serve()
        self.databases.share()
        self._hooks.run()
        return asyncio.run_coroutine_threadsafe(_in_order(work, thread.node), thread.loop)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run a function of the test in a thread that may use the test's database."""
        return await asyncio.to_thread(self.databases.run, work)


async def _in_order(work: Callable[[], Coroutine[Any, Any, T]], node: Node) -> T:
    """Run a coroutine function after and before the receivers of signals: the test sees both."""
    await node.events.drained(RECEIVERS_TIMEOUT)
    try:
        return await work()
    finally:
        await node.events.drained(RECEIVERS_TIMEOUT)


class _Thread:
    """A node on an event loop in a thread."""

    loop: asyncio.AbstractEventLoop
    node: Node

    def __init__(self, connections: Connections) -> None:
        """`connections`: the database connections of hooks and receivers of signals.

        Raises:
            Exception: the node could not be started.
        """
        self._connections = connections
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="realtime-test", daemon=True
        )
        self._thread.start()
        self._started.wait()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        try:
            self.node = await serving.start(self._connections)
        except BaseException as error:
            self._failure = error
            return
        finally:
            self._started.set()
        await self._stopped.wait()
        await serving.stop()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            # tasks that were cancelled, or whose connection was closed, have their turn to end
            await asyncio.wait(others, timeout=1)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
