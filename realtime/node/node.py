"""Node: a process that serves clients. Joins hub, engine and cluster; one per event loop.

Publications from the engine go to the feed of their channel; in recoverable channels by way of
the feed's `StreamFollower`, which keeps order and completeness once for all subscribers. Control
messages of other nodes are applied to the clients of this one. `start` and `stop` are those of the
process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack

import msgspec

from realtime.channel_rules import CONTROL, namespace_of
from realtime.cluster.control import ControlMessage, is_ordered
from realtime.cluster.survey import SurveyAnswer, SurveyQuestion
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.errors import DisconnectShutdown, EngineUnavailable, NoReply
from realtime.node.background import failure_of
from realtime.node.drain import CLOSE_INTERVAL, Closable
from realtime.node.parts import NodeParts
from realtime.protocol.messages import ChannelName, Publication, StreamPosition, UserID

logger = logging.getLogger("realtime.node")

SHUTDOWN_TIMEOUT = 4.0
"""Seconds from the end of the drain to the end of `stop` at most, even if something hangs."""
SIGNALS_APART = 1.0
"""Seconds after the first signal in which another one is taken for the same: Ctrl-C, or the end of
a group of processes, reaches a process directly and by way of its supervisor."""
ENGINE_STOP_TIMEOUT = 1.0
"""Seconds kept for the engine's stop if closing the clients takes too long, or `stop` came late."""


class Node(NodeParts):
    """See the module. Belongs to the event loop on which it was made."""

    # life

    async def start(self) -> None:
        """Begin to receive what other nodes publish.

        Raises:
            EngineUnavailable: The engine did not answer, or refused. The node has released
                everything; the next attempt needs a new one.
        """
        async with AsyncExitStack() as undo:
            undo.callback(self.verifier.close)
            undo.callback(self.timers.close)
            undo.push_async_callback(self.hooks.close)
            await self._engine.start(self, self.uid)
            undo.push_async_callback(self._engine.stop)
            await self.blocks.load()
            if self._peers is not None:
                await self._peers.start()
            self.blocks.start()
            self.user_limits.start()
            if self._sweeper is not None:
                self._sweeper.start()
            if self._expiry is not None:
                self._expiry.start()
            self.loop_lag.start()
            self.observer.start()
            undo.pop_all()

    def begin_stop(self) -> None:
        """Begin to close every client, which reconnects to another node. Returns at once."""
        self._drain.begin()

    def on_signal(self) -> None:
        """Begin to stop; at a second signal, close at once the clients that are left."""
        if self._drain.elapsed < SIGNALS_APART:
            self._drain.begin()
        else:
            self._drain.hurry()

    async def drained(self) -> None:
        """Wait until the node has closed every client, after `begin_stop`."""
        await self._drain.wait()

    async def stop(self) -> None:
        """Close every client within `drain_seconds`, and release everything in SHUTDOWN_TIMEOUT."""
        self.begin_stop()
        await self.drained()
        self.stopping = True
        soonest = self.loop.time() + ENGINE_STOP_TIMEOUT
        deadline = max(self._drain.over_at + SHUTDOWN_TIMEOUT, soonest)
        if self._sweeper is not None:
            self._sweeper.stop()
        if self._expiry is not None:
            self._expiry.stop()
        if self._peers is not None:
            self._peers.begin_stop()
        tasks = self._background.tasks
        while self._connections or tasks:
            timeout = deadline - ENGINE_STOP_TIMEOUT - self.loop.time()
            if timeout <= 0:
                break
            # no tasks, but clients: they are not done with closing
            waiting = tasks or {self.loop.create_task(asyncio.sleep(CLOSE_INTERVAL))}
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        self._background.cancel()
        for feed in self.hub.feeds.values():
            feed.close()
        async with AsyncExitStack() as last:  # these end, whatever the others raise
            last.callback(self.verifier.close)
            last.callback(self.timers.close)
            last.callback(self.observer.stop)
            closing = self.loop.create_task(self.hooks.close())  # no client asks them any more
            last.push_async_callback(failure_of, closing, deadline)
            await self._leave(deadline)

    async def _leave(self, deadline: float) -> None:
        # a server that hangs must leave the engine the time to close its connections
        by = deadline - ENGINE_STOP_TIMEOUT / 2
        if self._peers is not None:
            leaving = self._peers.stop(self._user_joins.held_seconds())
            if error := await failure_of(leaving, by):
                logger.warning("The node could not withdraw: %s", error)
        draining = self.loop.create_task(self.events.close())  # channels were vacated until here
        self.timers.close()  # what begins now would open connections of the engine again
        self._background.cancel()
        if error := await failure_of(self._engine.stop(), deadline):
            logger.warning("The engine did not stop: %s", error)
        await failure_of(draining, deadline)  # it logs its own failure

    def opened(self, connection: Closable) -> None:
        """Add a connection, for `stop` to close."""
        self._connections[connection] = None
        if self.is_draining:
            connection.close(DisconnectShutdown())

    def closed(self, connection: Closable) -> None:
        """Remove a connection that was closed."""
        self.single_connection.forget(connection.id)
        self._connections.pop(connection, None)

    # among the other nodes

    async def statuses(self) -> list[NodeStatus]:
        others = await super().statuses()
        return [self.status(), *(node for node in others if node.uid != self.uid)]

    async def _answer(self, question: SurveyQuestion) -> SurveyAnswer | None:
        return await self._answers.to(question)

    async def nodes(self) -> list[NodeInfo]:
        """Return the nodes that are alive, this one first with its figures of this moment."""
        others = await super().nodes()
        return [self.describe(), *(node for node in others if node.uid != self.uid)]

    async def channels(self) -> list[ChannelName]:
        return list(self.hub.feeds) if self.cluster is None else await super().channels()

    async def block_user(self, user: UserID, until: float) -> None:
        if self.limits is None:
            self.blocks.check_room(user)
        await super().block_user(user, until)

    async def blocked(self) -> Mapping[UserID, float]:
        return self.blocks.current() if self.limits is None else await super().blocked()

    async def send_control(self, message: ControlMessage) -> None:
        """Apply a control message here, and send it to the other nodes.

        Raises:
            NoReply: it has taken effect at this node, and perhaps at others.
        """
        applied = self.cluster is None or not is_ordered(message)
        if applied:
            await self._control.apply(message)
        if self.cluster is None:
            return
        try:
            await super().send_control(message)
        except EngineUnavailable as error:
            if applied:
                raise NoReply(f"done at this node: {error}") from None
            raise

    # from the engine: see `engine.base.Receiver`

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is None:
            if channel == self.direct.inbox:
                self.direct.on_message(publication.data)
            elif self._peers is not None:
                self._peers.on_publication(channel, publication, position)
            return
        if publication.traceparent and self.spans is not None:
            untraced = msgspec.structs.replace(publication, traceparent="")
            with self.spans.deliver(namespace_of(channel, self.config), publication.traceparent):
                self.on_publication(channel, untraced, position)
            return
        if (published := self.observer.published) is not None:
            published(channel, publication, position)
        if position is None or feed.follower is None:
            feed.publish(publication)
        else:
            feed.receive(publication, position, self.timers.now())

    def on_advance(self, channel: ChannelName, position: StreamPosition) -> None:
        feed = self.hub.feeds.get(channel)
        if feed is not None and feed.follower is not None:
            feed.follower.on_advance(position)
        elif channel == CONTROL and self._peers is not None:
            self._peers.control.on_advance(position)
