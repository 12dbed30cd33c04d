"""Respondent: answers what is asked of all nodes, from what this one knows of its clients."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any

import msgspec

from realtime.channel_rules import QUESTIONS
from realtime.cluster import survey
from realtime.cluster.survey import (
    Answer,
    AskConnections,
    AskSubscribers,
    ClientReport,
    ConnectionsAnswer,
    Question,
    SubscribersAnswer,
)
from realtime.engine.base import Engine
from realtime.errors import EngineUnavailable
from realtime.node.hub import Hub
from realtime.payload import Payload
from realtime.protocol.messages import UserID

logger = logging.getLogger("realtime.node")


class Respondent:
    """A node's side of surveys. Belongs to its event loop."""

    def __init__(
        self,
        engine: Engine,
        hub: Hub,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        *,
        uid: str,
        name: str,
    ) -> None:
        """`uid` and `name`: those of the node."""
        self._engine = engine
        self._hub = hub
        self._spawn = spawn
        self._uid = uid
        self._name = name

    async def start(self) -> None:
        """Begin to hear questions.

        Raises:
            EngineUnavailable
        """
        await self._engine.subscribe(QUESTIONS)

    def asked(self, data: Payload) -> None:
        """A question came, of this node or another member."""
        try:
            question = survey.decode_question(data)
        except msgspec.DecodeError as error:
            logger.debug("Another node asks what this one does not understand: %s", error)
            return
        if question.origin != self._uid:  # it has answered itself already
            self._spawn(self._reply(question))

    async def _reply(self, question: Question) -> None:
        answer = survey.encode_answer(self.answer(question))
        try:
            await self._engine.answer(question.survey, answer)
        except EngineUnavailable as error:
            logger.debug("A question of a survey could not be answered: %s", error)

    def answer(self, question: Question) -> Answer:
        """What this node says; of bounded size."""
        match question:
            case AskConnections(user=user):
                return self._connections(user)
            case AskSubscribers(channels=channels):
                feeds = self._hub.feeds
                numbers = [feeds[name].size if name in feeds else 0 for name in channels]
                return SubscribersAnswer(self._uid, self._name, numbers)

    def _connections(self, user: UserID) -> ConnectionsAnswer:
        clients = self._hub.connections(user)
        reports: list[ClientReport] = []
        room = survey.MAX_ANSWER_BYTES
        for client in islice(clients, survey.MAX_CONNECTIONS):
            report = client.report(survey.MAX_CHANNELS)
            room -= sum(map(len, report.channels)) + len(report.info or "")
            if room < 0:
                break
            reports.append(report)
        return ConnectionsAnswer(self._uid, self._name, len(clients), reports)
