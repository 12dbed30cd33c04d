"""Answers of this node to surveys, from its hub. They are bounded in size."""

from __future__ import annotations

from itertools import islice

from realtime.cluster import survey
from realtime.cluster.survey import (
    Answer,
    AskActivity,
    AskConnections,
    AskMirror,
    AskPast,
    AskSubscribers,
    ClientReport,
    ConnectionsAnswer,
    MirrorAnswer,
    Question,
    SubscribersAnswer,
)
from realtime.node.activity import Activity
from realtime.node.hub import Hub
from realtime.node.mirrors import Mirrors
from realtime.node.past import Past
from realtime.protocol.messages import UserID


class SurveyAnswers:
    """Answers the questions of surveys for a node."""

    def __init__(
        self,
        hub: Hub,
        activity: Activity,
        mirrors: Mirrors,
        past: Past,
        identity: tuple[str, str],
    ) -> None:
        """`identity`: ID and name of the node."""
        self._hub = hub
        self._activity = activity
        self._mirrors = mirrors
        self._past = past
        self._uid, self._name = identity

    async def answer(self, question: Question) -> Answer:
        """Answer a question."""
        match question:
            case AskConnections(user=user):
                return self._connections(user)
            case AskSubscribers(channels=channels):
                feeds = self._hub.feeds
                numbers = [feeds[name].size if name in feeds else 0 for name in channels]
                return SubscribersAnswer(self._uid, self._name, numbers)
            case AskActivity():
                return await self._activity.answer(question)
            case AskMirror():
                found = self._mirrors.answer(question, question.taken.get(self._uid, 0))
                return MirrorAnswer(self._uid, self._name, *found)
            case AskPast():
                return self._past.answer()

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
