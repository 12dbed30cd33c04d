"""The user log: how the connections of users ended at this node, and what was refused to them.

For operators who ask what became of a user who is not connected. Only an end and a refusal write
here. The least recently written user is forgotten when there are more than `MAX_USERS`.
"""

from __future__ import annotations

import time
from typing import Any

from msgspec.structs import replace

from realtime.operators.questions import RecentAnswer, Refusal
from realtime.protocol.messages import ChannelName, UserID

MAX_USERS = 2000
MAX_REFUSALS = 5
"""Refused commands of one user."""
MAX_LENGTH = 255
"""Characters of a name, of a user or channel. Longer users are not remembered."""


class UserLog:
    """See the module."""

    def __init__(self, uid: str, name: str) -> None:
        """`uid`, `name`: of the node."""
        self._nothing = RecentAnswer(uid, name, 0.0, 0, "", [])
        self._users: dict[UserID, RecentAnswer] = {}
        """Those that were written last are last."""

    def closed(self, user: UserID, code: int, reason: str) -> None:
        """Note that a connection ended.

        Args:
            user: its user; "" is ignored, because anonymous clients share it.
            code: what the client got, 0 if it went by itself.
            reason: a short English text.
        """
        self._write(user, ended_at=time.time(), code=code, reason=reason[:MAX_LENGTH])

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
        new = Refusal(time.time(), command, channel[:MAX_LENGTH], code, message[:MAX_LENGTH])
        self._write(user, refusals=[*self.answer(user).refusals, new][-MAX_REFUSALS:])

    def answer(self, user: UserID) -> RecentAnswer:
        """Return what is known of a user."""
        return self._users.get(user, self._nothing)

    def _write(self, user: UserID, **fields: Any) -> None:
        if not 0 < len(user) <= MAX_LENGTH:
            return
        self._users[user] = replace(self._users.pop(user, self._nothing), **fields)
        if len(self._users) > MAX_USERS:
            del self._users[next(iter(self._users))]
