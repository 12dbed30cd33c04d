"""Answers of this node to questions of the service, from its hub. They are bounded in size."""

from __future__ import annotations

from itertools import islice

from realtime.cluster import survey
from realtime.cluster.survey import (
    AskConnections,
    AskSubscribers,
    ClientReport,
    ConnectionsAnswer,
    Handler,
    SubscribersAnswer,
    SurveyQuestion,
)
from realtime.node.hub import Hub


class HubAnswers:
    """See the module."""

    def __init__(self, hub: Hub, uid: str, name: str) -> None:
        """`uid`, `name`: of the node."""
        self._hub = hub
        self._node = uid, name
        self.questions: dict[type[SurveyQuestion], Handler] = {
            AskConnections: self._connections,
            AskSubscribers: self._subscribers,
        }

    async def _connections(self, question: AskConnections) -> ConnectionsAnswer:
        clients = self._hub.connections(question.user)
        reports: list[ClientReport] = []
        room = survey.MAX_ANSWER_BYTES
        for client in islice(clients, survey.MAX_CONNECTIONS):
            report = client.report(survey.MAX_CHANNELS)
            room -= sum(map(len, report.channels)) + len(report.info or "") + len(report.agent)
            if room < 0:
                break
            reports.append(report)
        return ConnectionsAnswer(*self._node, len(clients), reports)

    async def _subscribers(self, question: AskSubscribers) -> SubscribersAnswer:
        feeds = self._hub.feeds
        numbers = [feeds[name].size if name in feeds else 0 for name in question.channels]
        return SubscribersAnswer(*self._node, numbers)
