"""What one user may have at this node, and over all nodes: connections, subscriptions, commands.

Anonymous clients have no user, and only the limits of their connection.
"""

from __future__ import annotations

import math
from collections import Counter

from realtime.cluster.context import Context
from realtime.engine.limits import SharedLimits
from realtime.errors import DisconnectConnectionLimit
from realtime.node.hub import Hub
from realtime.node.limits.user_connections import UserConnections
from realtime.node.limits.user_rates import UserRates
from realtime.node.subscriber import Subscriber
from realtime.protocol.messages import UserID


class UserChannels:
    """Subscriptions of each user at this process, for the option `user_channel_limit`.

    They are counted as they begin and end, because a user may have thousands of connections, and
    each subscribe asks. A client tells that its number may have changed; one that closes has none.

    Memory: a number for each client with subscriptions, and for each of their users.
    """

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


class UserLimits:
    """See the module. Belongs to the event loop of its node. What has no limit costs nothing."""

    def __init__(self, context: Context, hub: Hub, limits: SharedLimits | None) -> None:
        self._hub = hub
        config = context.config
        here, everywhere = config.client_user_connection_limit, config.user_connection_limit
        self._most_connections = min((each for each in (here, everywhere) if each > 0), default=0)
        self._most_channels = config.user_channel_limit
        self._channels = UserChannels() if self._most_channels > 0 else None
        self._connections: UserConnections | None = None
        if limits is not None and everywhere > 0:
            self._connections = UserConnections(context, hub, limits)
        rates = config.rates_of_users
        self.rates = UserRates(context, rates, limits) if rates else None

    def start(self) -> None:
        """Begin to count with other nodes."""
        if self._connections is not None:
            self._connections.start()

    def on_resumed(self) -> None:
        """Take into account that the engine may have lost what the node wrote."""
        if self._connections is not None:
            self._connections.forget()

    # connections

    def check_connection(self, user: UserID) -> None:
        """Check that a user may have one more connection, as far as this node knows.

        Raises:
            DisconnectConnectionLimit: it has `client_user_connection_limit` connections here, or
                `user_connection_limit`.
        """
        most = self._most_connections
        if not most or not user or len(self._hub.users.get(user, ())) < most:
            return  # without a look at each: a user may have thousands
        if len(self._hub.connections(user)) >= most:
            raise DisconnectConnectionLimit

    def opened(self, client: Subscriber) -> None:
        """Count a client that was added to the hub."""
        if self._connections is not None and client.user:
            self._connections.changed(client.user)

    def closing(self, client: Subscriber) -> None:
        """Count a client no more, nor its subscriptions."""
        if self._connections is not None and client.user:
            self._connections.changed(client.user)
        self.count_channels(client)

    # subscriptions

    def count_channels(self, client: Subscriber) -> None:
        """Count the subscriptions of a client, which have changed."""
        if self._channels is not None and client.user:
            self._channels.update(client)

    def room(self, user: UserID) -> float:
        """Return how many more subscriptions a user may have here, over all connections."""
        if self._channels is None or not user:
            return math.inf
        return self._most_channels - self._channels.of(user)
