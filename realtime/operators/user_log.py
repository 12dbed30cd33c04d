"""The user log: how the connections of users ended at this node, and what was refused to them.

For operators who ask what became of a user who is not connected. Only an end and a refusal write
here. The least recently written user is forgotten when there are more than `MAX_USERS`.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque

from realtime.operators.questions import RecentAnswer, Refusal
from realtime.protocol.messages import ChannelName, UserID

MAX_USERS = 2000
MAX_REFUSALS = 5
"""Refused commands of one user."""
MAX_LENGTH = 255
"""Characters of a name, of a user or channel. Longer users are not remembered."""


class _Kept:
    __slots__ = ("code", "ended_at", "reason", "refusals")

    def __init__(self) -> None:
        self.ended_at = 0.0
        self.code = 0
        self.reason = ""
        self.refusals: deque[Refusal] = deque(maxlen=MAX_REFUSALS)


class UserLog:
    """See the module."""

    def __init__(self, uid: str, name: str) -> None:
        """`uid`, `name`: of the node."""
        self._node = uid, name
        self._users: OrderedDict[UserID, _Kept] = OrderedDict()

    def closed(self, user: UserID, code: int, reason: str) -> None:
        """Note that a connection ended.

        Args:
            user: its user; "" is ignored, because anonymous clients share it.
            code: what the client got, 0 if it went by itself.
            reason: a short English text.
        """
        if (past := self._of(user)) is not None:
            past.ended_at, past.code, past.reason = time.time(), code, reason[:MAX_LENGTH]

    def refused(
        self, user: UserID, command: str, channel: ChannelName, code: int, message: str
    ) -> None:
        """Note that a command was refused.

        Args:
            user: as in `closed`.
            command: its method.
            channel: what it is about; "" if that is not known.
            code: of the error.
            message: of the error.
        """
        if (past := self._of(user)) is not None:
            past.refusals.append(
                Refusal(time.time(), command, channel[:MAX_LENGTH], code, message[:MAX_LENGTH])
            )

    def answer(self, user: UserID) -> RecentAnswer:
        """Return what is known of a user."""
        past = self._users.get(user) or _Kept()
        refusals = list(past.refusals)
        return RecentAnswer(*self._node, past.ended_at, past.code, past.reason, refusals)

    def _of(self, user: UserID) -> _Kept | None:
        if not 0 < len(user) <= MAX_LENGTH:
            return None
        past = self._users.get(user)
        if past is None:
            past = self._users[user] = _Kept()
            if len(self._users) > MAX_USERS:
                self._users.popitem(last=False)
        else:
            self._users.move_to_end(user)
        return past
