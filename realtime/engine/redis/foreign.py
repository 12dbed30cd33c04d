"""Third-party channel layers, named by the option `channel_layer`.

Redis numbers and keeps a message, then the layer sends it: a second step, after which the message
may arrive in any order, or be dropped. Gaps are filled from history.

This file is the border. Records are lists of strings and numbers, which every layer can carry.
Their payloads are parsed again when they come out of a layer, because others may write there.
Whatever a layer raises becomes an EngineUnavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any, Protocol

from asgiref.sync import async_to_sync

from realtime.engine.records import CHECKED, Message
from realtime.engine.redis.messages import positioned
from realtime.engine.redis.redis_bus import Handler, RedisBus, RedisGroups, Send
from realtime.engine.redis.servers import OnShards
from realtime.errors import EngineUnavailable, NoReply
from realtime.protocol.messages import StreamPosition

logger = logging.getLogger("realtime.engine")

CLOSE_TIMEOUT = 1.5
"""Seconds a layer has to close."""
SEND_TIMEOUT = 5.0
"""Seconds that a layer may take to send. Later messages to the same group wait for their turn."""
RETRY_DELAY = 1.0
"""Seconds between attempts to receive from a layer that fails."""
GROUP_RENEWAL = 3600.0
"""Seconds after which groups are joined again: some layers forget members after a day."""


class ForeignLayer(Protocol):
    """What the service uses of a channel layer."""

    async def new_channel(self) -> str: ...

    async def receive(self, channel: str) -> Message: ...

    async def group_add(self, group: str, channel: str) -> None: ...

    async def group_discard(self, group: str, channel: str) -> None: ...

    async def group_send(self, group: str, message: Message) -> None: ...


def blocking_send(layer: ForeignLayer) -> Send:
    """Return what sends from a thread. Layers are asynchronous, so each message makes a loop."""
    group_send = async_to_sync(layer.group_send)

    async def send(group: str, message: Message, position: StreamPosition | None) -> None:
        with wrapping_errors():
            group_send(group, _sent(message, position))

    return send


class ForeignGroups(RedisGroups):
    """The groups that a node joins, in a third-party layer."""

    sharded = False

    def __init__(self, redis: RedisBus, layer: ForeignLayer) -> None:
        """`redis`: is closed with the groups."""
        super().__init__(redis)
        self.send = self._group_send
        self._layer = layer
        self._mailbox = ""
        self._groups: dict[str, None] = {}
        self._order = asyncio.Lock()
        self._receiver: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self, handler: Handler, on_lost: OnShards, on_restored: OnShards) -> None:
        with wrapping_errors():
            self._mailbox = await self._layer.new_channel()
        self._receiver = asyncio.create_task(self._receive(handler, on_lost, on_restored))
        self._renewal = asyncio.create_task(self._renew())

    async def close(self) -> None:
        self._closing = True
        tasks = [task for task in (self._receiver, self._renewal) if task is not None]
        for _ in range(2):  # some layers swallow a cancellation
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT / 3)
        with contextlib.suppress(EngineUnavailable, TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT / 3):
                for group in list(self._groups):
                    await self.leave(group)
        await self._redis.close()

    async def _group_send(
        self, group: str, message: Message, position: StreamPosition | None
    ) -> None:
        with wrapping_errors():
            async with asyncio.timeout(SEND_TIMEOUT):
                await self._layer.group_send(group, _sent(message, position))

    async def join(self, group: str) -> None:
        self._groups[group] = None
        async with self._order:
            with wrapping_errors():
                await self._layer.group_add(group, self._mailbox)

    async def leave(self, group: str) -> None:
        self._groups.pop(group, None)
        async with self._order:
            with wrapping_errors():
                await self._layer.group_discard(group, self._mailbox)

    async def _receive(self, handler: Handler, on_lost: OnShards, on_restored: OnShards) -> None:
        failing = False
        while not self._closing:
            receiving = asyncio.ensure_future(self._layer.receive(self._mailbox))
            try:
                # silence after a failure is as good as a message
                await asyncio.wait([receiving], timeout=RETRY_DELAY if failing else None)
                if failing and not (receiving.done() and _failed(receiving)):
                    failing = False
                    logger.warning("The channel layer receives again")
                    on_restored((0,))
                await asyncio.wait([receiving])
                if receiving.cancelled():  # which would end this task, were it awaited
                    raise ConnectionAbortedError("the layer cancelled its own receive")
                message = receiving.result()
            except Exception as error:  # layers raise what they like
                if not failing:
                    logger.warning("The channel layer fails to receive: %r", error)
                    failing = True
                    on_lost((0,))
                await asyncio.sleep(RETRY_DELAY)  # one that fails at once would keep the loop busy
                continue
            finally:
                receiving.cancel()
            try:
                handler(_unmarked(message))
            except Exception:  # an invalid message must not stop the others
                logger.exception("A message of the channel layer could not be handled")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(GROUP_RENEWAL)
            for group in list(self._groups):
                async with self._order:
                    if group in self._groups:
                        with contextlib.suppress(EngineUnavailable), wrapping_errors():
                            await self._layer.group_add(group, self._mailbox)


@contextlib.contextmanager
def wrapping_errors() -> Iterator[None]:
    """Call a layer within this block.

    Raises:
        NoReply: the layer raised something; what it was asked for may have happened.
    """
    try:
        yield
    except Exception as error:
        raise NoReply(f"the channel layer failed: {error!r}") from error


def _failed(task: asyncio.Future[Any]) -> bool:
    return task.cancelled() or task.exception() is not None


def _sent(message: Message, position: StreamPosition | None) -> Message:
    content = _unmarked(message)
    return content if position is None else positioned(content, position)


def _unmarked(message: Message) -> Message:
    """Return a message without the mark that is trusted in Redis only: payloads are checked."""
    return {key: value for key, value in message.items() if key != CHECKED}
