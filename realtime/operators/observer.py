"""What operators see of one node: its observer, and the answers to their questions."""

from __future__ import annotations

import asyncio
from heapq import nsmallest

from realtime.cluster.survey import Handler, SurveyQuestion
from realtime.node.observer import Observer
from realtime.node.parts import NodeParts
from realtime.node.subscriber import Subscriber
from realtime.operators.activity import Activity
from realtime.operators.copies import Mirrors
from realtime.operators.figures import Figures
from realtime.operators.questions import (
    MAX_USERS,
    AskActivity,
    AskMirror,
    AskPast,
    AskRecent,
    AskUsers,
    MirrorAnswer,
    PastAnswer,
    RecentAnswer,
    UsersAnswer,
)
from realtime.operators.recorder import NodeRecorder
from realtime.operators.taps import Taps
from realtime.operators.user_log import UserLog
from realtime.protocol.messages import ChannelName, UserID

USERS_PER_TURN = 10_000
"""Users that are looked at before others get a turn of the event loop."""


class NodeObserver(Taps, Observer):
    """See the module, and `realtime.node.observer`. Belongs to the event loop of its node."""

    def __init__(self, node: NodeParts) -> None:
        super().__init__()
        self._hub = node.hub
        self._node = node.uid, node.name
        figures = Figures(node)
        self.recorder = NodeRecorder(node.context, node.name, figures.reading, node.cluster)
        self.mirrors = Mirrors(node.hub, self, node.timers)
        self.user_log = UserLog(*self._node)
        self.questions: dict[type[SurveyQuestion], Handler] = {
            AskActivity: Activity(node.hub, self, node.counters, node.timers, figures.now).answer,
            AskMirror: self._copies,
            AskPast: self._past,
            AskRecent: self._recent,
            AskUsers: self._users,
        }

    def start(self) -> None:
        self.recorder.start()

    def stop(self) -> None:
        self.recorder.stop()

    def happened(self, kind: str, text: str = "", *, subject: str = "") -> None:
        self.recorder.events.add(kind, text, subject=subject)

    def opened(self, client: Subscriber) -> None:
        self.mirrors.opened(client)

    def closed(self, user: UserID, code: int, reason: str) -> None:
        self.user_log.closed(user, code, reason)

    def refused(
        self, user: UserID, command: str, channel: ChannelName, code: int, message: str
    ) -> None:
        self.user_log.refused(user, command, channel, code, message)

    async def _copies(self, question: AskMirror) -> MirrorAnswer:
        uid, name = self._node
        return MirrorAnswer(uid, name, *self.mirrors.answer(question, question.taken.get(uid, 0)))

    async def _past(self, question: AskPast) -> PastAnswer:
        return self.recorder.answer()

    async def _recent(self, question: AskRecent) -> RecentAnswer:
        return self.user_log.answer(question.user)

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
        return UsersAnswer(*self._node, numbers, len(found))
