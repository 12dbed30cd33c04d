"""Answers of this node to surveys, from its hub. They are bounded in size."""

from __future__ import annotations

import asyncio
from heapq import nsmallest
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
from realtime.cluster.user_surveys import MAX_USERS, AskRecent, AskUsers, UsersAnswer
from realtime.node.activity import Activity
from realtime.node.hub import Hub
from realtime.node.mirrors import Mirrors
from realtime.node.past import Past
from realtime.node.recent import Recent
from realtime.protocol.messages import UserID

USERS_PER_TURN = 10_000
"""Users that are looked at before others get a turn of the event loop."""


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
        self.recent = Recent(*identity)
        """What the node remembers of users; it writes, and surveys ask."""
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
            case AskRecent(user=user):
                return self.recent.answer(user)
            case AskUsers():
                return await self._users(question)

    def _connections(self, user: UserID) -> ConnectionsAnswer:
        clients = self._hub.connections(user)
        reports: list[ClientReport] = []
        room = survey.MAX_ANSWER_BYTES
        for client in islice(clients, survey.MAX_CONNECTIONS):
            report = client.report(survey.MAX_CHANNELS)
            room -= sum(map(len, report.channels)) + len(report.info or "") + len(report.agent)
            if room < 0:
                break
            reports.append(report)
        return ConnectionsAnswer(self._uid, self._name, len(clients), reports)

    async def _users(self, question: AskUsers) -> UsersAnswer:
        """Return the first users of this node whose ID begins with a text.

        A user whose connections are all closing is not connected.
        """
        users = list(self._hub.users)
        found: list[UserID] = []
        for start in range(0, len(users), USERS_PER_TURN):
            part = users[start : start + USERS_PER_TURN]
            found += (user for user in part if user and user.startswith(question.prefix))
            await asyncio.sleep(0)
        first = nsmallest(min(question.limit, MAX_USERS), found)
        numbers = {user: len(self._hub.connections(user)) for user in first}
        numbers = {user: number for user, number in numbers.items() if number}
        return UsersAnswer(self._uid, self._name, numbers, len(found))
