"""Subscriptions of each user at this process, for the option `user_channel_limit`.

They are counted as they begin and end, because a user may have thousands of connections, and each
subscribe asks. A client tells that its number may have changed; one that closes has none:

    a subscription begins or ends, a connection closes ──► update(client) ──► of(user)

Memory: a number for each client with subscriptions, and for each of their users. Without the option
there is none of it.
"""

from __future__ import annotations

from collections import Counter

from realtime.node.subscriber import Subscriber
from realtime.protocol.messages import UserID


class UserChannels:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self) -> None:
        self._of_clients: dict[Subscriber, int] = {}
        self._of_users: Counter[UserID] = Counter()

    def of(self, user: UserID) -> int:
        """Return the subscriptions of a user, and those in the making, over all connections."""
        return self._of_users[user]

    def update(self, client: Subscriber) -> None:
        """Count the subscriptions of a client anew. It has a user, and always the same."""
        user = client.user
        now = 0 if client.is_closing() else client.num_channels
        before = self._of_clients.pop(client, 0)
        if now:
            self._of_clients[client] = now
        if total := self._of_users[user] + now - before:
            self._of_users[user] = total
        else:
            self._of_users.pop(user, None)
