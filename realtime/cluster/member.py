"""Member: a process that takes part in the service. It can publish, ask and command.

A `Node` is a member that serves clients besides. Others (workers, shells, WSGI processes)
reach them through a shared engine.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from itertools import count

import msgspec

from realtime.channel_rules import CONTROL
from realtime.cluster import control, survey
from realtime.cluster.control import Control, DisconnectUser, EndLogins, Unsubscribe
from realtime.cluster.survey import (
    A,
    Answer,
    AskConnections,
    AskSubscribers,
    ConnectionsAnswer,
    Question,
    SubscribersAnswer,
    Surveyed,
)
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import NodeInfo, NodeStatus, Store
from realtime.errors import Disconnect, DisconnectForced, EngineUnavailable
from realtime.metrics import Counters
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, ClientInfo, Publication, UserID

logger = logging.getLogger("realtime.node")

SURVEY_PATIENCE = 1.0
"""Seconds in which nodes have to answer."""
SURVEY_LIFETIME = 2.0
"""Seconds in which their answers are taken."""
FIRST_LOOK, LOOK_INTERVAL = 0.002, 0.05
"""Seconds until the first look for answers; twice as long until the next one, up to so long."""

CONTROL_OPTIONS = ChannelOptions(history_size=10_000, history_lifetime=600, history_recover=True)
"""What nodes are told is kept as publications are: a node that was cut off catches up."""


class Member:
    """A process of the service. Its coroutines run where its store does."""

    pipelines_publishes = False
    """Whether publications may be under way side by side, and still keep their order."""
    stopping = False
    """Whether this process is about to end and takes no commands any more."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.broker = store.broker
        self.presence = store.presence
        self.cluster = store.cluster
        self.uid = str(uuid.uuid4())
        self.counters = Counters()
        self._publications = count(1)
        self._uid_prefix = self.uid.replace("-", "")[:20]

    async def publish(
        self,
        channel: ChannelName,
        data: Payload,
        options: ChannelOptions,
        info: ClientInfo | None = None,
    ) -> None:
        """Publish to a channel's subscribers in every process. `info`: of a publishing client."""
        await self.broker.publish(channel, self._publication(data, options, info), options)
        self.counters.published += 1

    async def publish_many(
        self, publications: Sequence[tuple[ChannelName, Payload, ChannelOptions]]
    ) -> list[EngineUnavailable | None]:
        """Publish into several channels; what failed, by index."""
        failures = await self.broker.publish_many(
            [
                (name, self._publication(data, options), options)
                for name, data, options in publications
            ]
        )
        self.counters.published += failures.count(None)
        return failures

    def _publication(
        self, data: Payload, options: ChannelOptions, info: ClientInfo | None = None
    ) -> Publication:
        uid = f"{self._uid_prefix}{next(self._publications):x}" if options.keeps_history else ""
        return Publication(data, info, 0, uid)

    async def unsubscribe_user(self, user: UserID, channel: ChannelName) -> None:
        """Unsubscribe a user's connections from a channel; "" means from all their channels."""
        await self._send_control(Unsubscribe(user, channel))

    async def disconnect_user(
        self, user: UserID, disconnect: Disconnect | None = None, *, keep: ClientID = ""
    ) -> None:
        """Close a user's connections in every process, but for the one called `keep`."""
        await self._send_control(
            DisconnectUser(user, (disconnect or DisconnectForced()).code, keep)
        )

    async def end_logins(
        self, user: UserID, login: str, disconnect: Disconnect | None = None
    ) -> None:
        """Close a user's connections of one login session; "" looks again at all of theirs."""
        await self._send_control(EndLogins(user, login, (disconnect or DisconnectForced()).code))

    async def nodes(self) -> list[NodeInfo]:
        """Every node that is alive, by name."""
        if self.cluster is None:
            return []
        return sorted(await self.cluster.nodes(), key=lambda node: node.name)

    async def statuses(self) -> list[NodeStatus]:
        """Every node that is alive, and those that died not long ago, in no order."""
        return [] if self.cluster is None else await self.cluster.statuses()

    async def channels(self) -> list[ChannelName]:
        """Return the channels that have a subscriber at any node, in no order."""
        return [] if self.cluster is None else await self.cluster.channels()

    async def _send_control(self, message: Control) -> None:
        """Send a control message to every node."""
        message = msgspec.structs.replace(message, origin=self.uid)
        publication = self._publication(control.encode(message), CONTROL_OPTIONS)
        await self.broker.publish(CONTROL, publication, CONTROL_OPTIONS)

    # surveys

    async def connections(self, user: UserID) -> Surveyed[ConnectionsAnswer]:
        """What every node says of a user's connections."""
        return await self._survey(AskConnections(user, self.uid), ConnectionsAnswer)

    async def subscribers(self, channels: Sequence[ChannelName]) -> Surveyed[SubscribersAnswer]:
        """How many subscribers of channels every node has."""
        return await self._survey(AskSubscribers(tuple(channels), self.uid), SubscribersAnswer)

    async def _survey(self, question: Question, kind: type[A]) -> Surveyed[A]:
        """Ask every node that is alive; those that do not answer in time are missing."""
        waiting = {node.uid: node.name for node in await self.nodes()}
        answers: dict[str, A] = {}
        own = self._answer(question)
        if isinstance(own, kind):
            answers[own.node] = own
            del waiting[own.node]
        if waiting and self.cluster is not None:
            deadline = self._now() + SURVEY_PATIENCE
            await self.cluster.ask(
                question.survey, survey.encode_question(question), SURVEY_LIFETIME
            )
            pause, seen = FIRST_LOOK, 0
            while waiting and self._now() < deadline:
                await self._pause(pause)
                pause = min(2 * pause, LOOK_INTERVAL)
                arrived = await self.cluster.answers(question.survey, seen)
                seen += len(arrived)
                for encoded in arrived:
                    try:
                        answer = survey.decode_answer(encoded, kind)
                    except msgspec.DecodeError as error:
                        logger.debug("Another node answers what nobody asked: %s", error)
                        continue
                    answers[answer.node] = answer
                    waiting.pop(answer.node, None)
        return Surveyed(list(answers.values()), sorted(waiting.values()))

    def _answer(self, question: Question) -> Answer | None:
        """What this process answers, if it serves clients."""
        return None

    def _now(self) -> float:
        return time.monotonic()

    async def _pause(self, seconds: float) -> None:
        """Wait, blocking the thread: there is no event loop that others could use."""
        time.sleep(seconds)
