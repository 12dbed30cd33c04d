"""Peers: the side of a node that the other nodes see.

Every node renews a heartbeat, an entry that expires. Control messages are a stream, followed as
recoverable channels are: a node that was cut off applies them late rather than never. Questions of
surveys are answered.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

import msgspec

from realtime.channel_rules import CONTROL, PENDING, QUESTIONS
from realtime.cluster import control
from realtime.cluster.context import Context
from realtime.cluster.control import ControlMessage
from realtime.cluster.survey import Answers, SurveyQuestion, encode_answer
from realtime.engine.base import Broker
from realtime.engine.nodes import Cluster, NodeInfo
from realtime.errors import EngineUnavailable
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.streams.follower import StreamFollower

logger = logging.getLogger("realtime.node")

HEARTBEAT_INTERVAL = 3.0
HEARTBEAT_LIFETIME = 10.0
"""Seconds between two heartbeats, and until a node without heartbeats counts as dead."""


SLOW_HEARTBEAT = 1.0
"""Seconds after which a heartbeat that the engine has not taken shows that it holds messages
back."""


class Peers:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        context: Context,
        broker: Broker,
        cluster: Cluster,
        *,
        describe: Callable[[], NodeInfo],
        on_control: Callable[[ControlMessage], None],
        answers: Answers,
        on_wake_up: Callable[[], object],
    ) -> None:
        """
        Args:
            describe: returns what the node says of itself in a heartbeat.
            on_control: is called with every control message, those of this node included, in the
                order that is the same at every node.
            answers: what this node answers to the questions of surveys.
            on_wake_up: is called when a process wakes relays, if the node takes wake-ups.
        """
        self._uid, self._outage = context.uid, context.outage
        self._timers, self._spawn = context.timers, context.spawn
        self._broker = broker
        self._cluster = cluster
        self._describe = describe
        self._on_control = on_control
        self._answers = answers
        self._on_wake_up = on_wake_up
        self.control = StreamFollower(broker, CONTROL, self._on_control_publication, self._on_lost)
        """Follows the stream of control messages."""
        self._heartbeat_timer = self._timers.timer(lambda: self._spawn(self.heartbeat()))
        self._is_stopping = False
        self.heartbeat_seconds: float | None = None
        """How long the engine took for the last heartbeat that it took; None before."""
        self._announcing_since: float | None = None
        self._slow_at = -math.inf
        """When the engine took the last heartbeat that was slow."""

    async def start(self) -> None:
        """Begin to receive control messages and questions, and send the first heartbeat.

        Raises:
            EngineUnavailable: The engine did not answer, or refused.
        """
        try:
            await self._broker.subscribe(QUESTIONS)
            await self._broker.subscribe(CONTROL)
            await self.control.start()
            await self._announce()
        except BaseException:
            self.control.stop()
            raise
        self._set_heartbeat_timer()

    def begin_stop(self) -> None:
        """Send no more heartbeats. Control messages are still applied."""
        self._is_stopping = True
        self._heartbeat_timer.cancel()

    async def stop(self, held_seconds: float | None = None) -> None:
        """Apply no more control messages, and withdraw the node.

        Args:
            held_seconds: see `Cluster.withdraw`.

        Raises:
            EngineUnavailable: the other nodes will count it as dead, but only later.
        """
        self.control.stop()
        await self._cluster.withdraw(self._describe(), held_seconds)

    async def heartbeat(self) -> None:
        """Send a heartbeat, and check whether a control message was lost. Never raises."""
        try:
            try:
                await self._announce()
            finally:
                if not self._is_stopping:
                    self._set_heartbeat_timer()
        except EngineUnavailable as error:  # the next heartbeat tries again
            if self._outage.begins():
                logger.warning("Heartbeat failed: %s", error)
        else:
            await self._check_control()

    async def _announce(self) -> None:
        began = time.perf_counter()
        self._announcing_since = self._timers.now()
        try:
            await self._cluster.announce(self._describe(), HEARTBEAT_LIFETIME)
        finally:
            if self._is_slow():
                self._slow_at = self._timers.now()
            self._announcing_since = None
        self.heartbeat_seconds = time.perf_counter() - began

    def _is_slow(self) -> bool:
        since = self._announcing_since
        return since is not None and self._timers.now() - since > SLOW_HEARTBEAT

    def was_slow(self, seconds: float) -> bool:
        """Return whether the engine kept a heartbeat waiting in the last `seconds`."""
        return self._is_slow() or self._timers.now() - self._slow_at < seconds

    def _set_heartbeat_timer(self) -> None:
        self._heartbeat_timer.set(self._timers.now() + HEARTBEAT_INTERVAL)

    async def _check_control(self) -> None:
        """Notice a lost control message, and keep the position of the stream from expiring."""
        try:
            async with asyncio.timeout(HEARTBEAT_INTERVAL):
                await self.control.check()
        except (EngineUnavailable, TimeoutError) as error:  # the next heartbeat tries again
            logger.debug("Could not check the stream of control messages: %r", error)

    # what arrives

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        """Take a publication in an internal channel; others are ignored."""
        if channel == CONTROL and position is not None:
            self.control.on_publication(publication, position)
        elif channel == QUESTIONS:
            self._on_question(publication.data)
        elif channel == PENDING:
            self._on_wake_up()

    def _on_control_publication(self, publication: Publication) -> None:
        try:
            message = control.decode(publication.data)
        except msgspec.DecodeError as error:
            logger.warning("Ignored an unknown control message (different version?): %s", error)
            return
        self._on_control(message)

    def _on_lost(self) -> None:
        logger.error(
            "The engine lost control messages: a recent disconnect or unsubscribe may not have"
            " reached the clients of this node"
        )

    def _on_question(self, data: Payload) -> None:
        try:
            question = self._answers.question(data)
        except msgspec.DecodeError as error:
            logger.debug("Ignored an unknown survey question (different version?): %s", error)
            return
        if question.origin != self._uid:  # this node counted its own answer already
            self._spawn(self._reply(question))

    async def _reply(self, question: SurveyQuestion) -> None:
        answer = await self._answers.to(question)
        assert answer is not None, "only what it knows was decoded"
        try:
            await self._cluster.answer(question.survey, encode_answer(answer))
        except EngineUnavailable as error:
            logger.debug("Could not answer a survey: %s", error)
