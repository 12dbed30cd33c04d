"""What carries the engine: the service's own channel layer, or any other one besides.

A carrier makes round trips to Redis and sends messages to groups. There is one for event
loops and one for threads without; and with a foreign layer sending takes a second step.

The coroutines of the blocking carriers never suspend: they can be run by hand, without an
event loop (`realtime.serving` does).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from asgiref.sync import async_to_sync

from realtime.engine.redis.layer import (
    Handler,
    Message,
    OnShard,
    Position,
    RedisChannelLayer,
    Sending,
    Step,
)

logger = logging.getLogger("realtime.engine")

CLOSE_TIMEOUT = 1.5
"""Seconds a foreign layer has to let go."""
RETRY_DELAY = 1.0
"""Seconds between attempts to receive from a layer that fails."""
GROUP_RENEWAL = 3600.0
"""Seconds after which groups are joined again: some layers forget members after a day."""


class Carrier(Protocol):
    """What the engine asks of a process' connection to the others."""

    layer: RedisChannelLayer

    async def take(self, step: Step) -> Any:
        """Make one round trip to Redis. Raises EngineUnavailable."""
        ...

    async def publish(self, sending: Sending) -> Position | None:
        """Keep and send one message. Raises EngineUnavailable, or what a foreign layer raises."""
        ...

    async def publish_many(
        self, sendings: Sequence[Sending]
    ) -> list[Position | BaseException | None]:
        """Keep and send several."""
        ...


class Receiving(Carrier, Protocol):
    """A carrier that receives, too."""

    sharded: bool
    """Whether groups belong to shards that are lost one by one."""

    async def open(self, handler: Handler, on_lost: OnShard, on_restored: OnShard) -> None:
        """Begin to receive."""
        ...

    async def close(self) -> None:
        """Receive nothing more, and release everything."""
        ...

    async def join(self, group: str) -> None:
        """Receive what is sent to a group. Takes effect in the order of calls."""
        ...

    async def leave(self, group: str) -> None:
        """Receive it no longer. Takes effect in the order of calls."""
        ...


class LayerCarrier:
    """The service's own layer: one mailbox, one step."""

    sharded = True

    def __init__(self, layer: RedisChannelLayer, *, owned: bool = True) -> None:
        """`owned`: nobody else uses the layer, so its connections are closed with the carrier."""
        self.layer = layer
        self._owned = owned
        self.take = layer.take
        self.publish = layer.publish
        self.publish_many = layer.publish_many
        self._mailbox = ""

    async def open(self, handler: Handler, on_lost: OnShard, on_restored: OnShard) -> None:
        self._mailbox = await self.layer.open_mailbox(handler, on_lost, on_restored)

    async def close(self) -> None:
        await self.layer.close_mailbox(self._mailbox)
        if self._owned:
            await self.layer.close()

    async def join(self, group: str) -> None:
        await self.layer.group_add(group, self._mailbox)

    async def leave(self, group: str) -> None:
        await self.layer.group_discard(group, self._mailbox)


class TwoStepCarrier:
    """Redis keeps, and a foreign layer sends: a second step after the first.

    Messages may arrive in any order, and some layers drop them; gaps are filled from history.
    """

    sharded = False

    def __init__(self, layer: RedisChannelLayer, foreign: Any) -> None:
        self.layer = layer
        self.take = layer.take
        self._foreign = foreign
        self._mailbox = ""
        self._groups: dict[str, None] = {}
        self._order: asyncio.Lock = asyncio.Lock()
        self._receiver: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._closing = False

    async def publish(self, sending: Sending) -> Position | None:
        position = None
        if sending.stream is not None:
            position = await self.layer.publish(sending._replace(send=False))
        await self._foreign.group_send(sending.group, _positioned(sending.message, position))
        return position

    async def publish_many(
        self, sendings: Sequence[Sending]
    ) -> list[Position | BaseException | None]:
        return await _one_by_one(self, sendings)

    async def open(self, handler: Handler, on_lost: OnShard, on_restored: OnShard) -> None:
        self._mailbox = await self._foreign.new_channel()
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
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT / 3):
                for group in list(self._groups):
                    await self.leave(group)
        await self.layer.close()

    async def join(self, group: str) -> None:
        self._groups[group] = None
        async with self._order:
            await self._foreign.group_add(group, self._mailbox)

    async def leave(self, group: str) -> None:
        self._groups.pop(group, None)
        async with self._order:
            await self._foreign.group_discard(group, self._mailbox)

    async def _receive(self, handler: Handler, on_lost: OnShard, on_restored: OnShard) -> None:
        failing = False
        while not self._closing:
            receiving = asyncio.ensure_future(self._foreign.receive(self._mailbox))
            try:
                # silence after a failure is as good as a message
                await asyncio.wait([receiving], timeout=RETRY_DELAY if failing else None)
                if failing and not (receiving.done() and _failed(receiving)):
                    failing = False
                    on_restored(0)
                await asyncio.wait([receiving])
                if receiving.cancelled():  # which would end this task, were it awaited
                    raise ConnectionAbortedError("the layer cancelled its own receive")
                message = receiving.result()
            except Exception as error:  # layers of others raise whatever theirs is
                if not failing:
                    logger.warning("The channel layer fails to receive: %r", error)
                    failing = True
                    on_lost(0)
                await asyncio.sleep(RETRY_DELAY)  # one that fails at once would keep the loop busy
                continue
            finally:
                receiving.cancel()
            try:
                handler(message)
            except Exception:  # what is wrong with one message must not reach the others
                logger.exception("A message of the channel layer could not be handled")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(GROUP_RENEWAL)
            for group in list(self._groups):
                async with self._order:
                    if group in self._groups:
                        with contextlib.suppress(Exception):
                            await self._foreign.group_add(group, self._mailbox)


class BlockingCarrier:
    """The service's own layer, for threads without an event loop."""

    def __init__(self, layer: RedisChannelLayer) -> None:
        self.layer = layer

    async def take(self, step: Step) -> Any:
        return self.layer.take_blocking(step)

    async def publish(self, sending: Sending) -> Position | None:
        return self.layer.publish_blocking(sending)

    async def publish_many(
        self, sendings: Sequence[Sending]
    ) -> list[Position | BaseException | None]:
        return self.layer.publish_many_blocking(sendings)


class BlockingTwoStepCarrier(BlockingCarrier):
    """As `TwoStepCarrier`; foreign layers are asynchronous, so an event loop is made for each."""

    def __init__(self, layer: RedisChannelLayer, foreign: Any) -> None:
        super().__init__(layer)
        self._send = async_to_sync(foreign.group_send)

    async def publish(self, sending: Sending) -> Position | None:
        position = None
        if sending.stream is not None:
            position = self.layer.publish_blocking(sending._replace(send=False))
        self._send(sending.group, _positioned(sending.message, position))
        return position

    async def publish_many(
        self, sendings: Sequence[Sending]
    ) -> list[Position | BaseException | None]:
        return await _one_by_one(self, sendings)


def _failed(task: asyncio.Future[Any]) -> bool:
    return task.cancelled() or task.exception() is not None


async def _one_by_one(
    carrier: Carrier, sendings: Sequence[Sending]
) -> list[Position | BaseException | None]:
    """Publish several in two steps each; side by side, those of one channel would change places."""
    results: list[Position | BaseException | None] = []
    for sending in sendings:
        try:
            results.append(await carrier.publish(sending))
        except Exception as error:
            results.append(error)
    return results


def _positioned(message: Message, position: Position | None) -> Message:
    if position is None:
        return message
    return {**message, "offset": position.offset, "epoch": position.epoch}
