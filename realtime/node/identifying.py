"""Clients whose user is not known yet, and the control messages that concern them all the same.

A hook or a key set may take seconds to say who a client is. Its answer may be out of date when it
comes: the site has taken a right away meanwhile, and had all nodes disconnect or unsubscribe the
user. The hub does not know the client then. So these messages are kept until every client
whose identification had begun before them is identified.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from realtime.cluster.control import DisconnectUser, Unsubscribe
from realtime.protocol.messages import UserID

Missed = list[Unsubscribe | DisconnectUser]


class Identifying:
    """The clients that are being identified. Belongs to the event loop of its node."""

    def __init__(self) -> None:
        self._messages: deque[Unsubscribe | DisconnectUser] = deque()
        self._dropped = 0
        """Number of messages that were kept before the first one of these."""
        self._begun: dict[object, int] = {}
        """Identification → number of messages before it; the oldest one first."""

    def add(self, message: Unsubscribe | DisconnectUser) -> None:
        """Keep a message for the clients that are being identified now."""
        if self._begun:
            self._messages.append(message)

    @contextmanager
    def begin(self) -> Iterator[Callable[[UserID], Missed]]:
        """Identify a client in this block.

        Yields:
            A function that returns the messages about a user that came since the block began.
        """
        identification = object()
        begun = self._begun[identification] = self._dropped + len(self._messages)

        def missed(user: UserID) -> Missed:
            number = self._dropped + len(self._messages) - begun
            if not number:
                return []
            return [message for message in list(self._messages)[-number:] if message.user == user]

        try:
            yield missed
        finally:
            del self._begun[identification]
            oldest = next(iter(self._begun.values()), self._dropped + len(self._messages))
            while self._dropped < oldest:
                self._messages.popleft()
                self._dropped += 1
