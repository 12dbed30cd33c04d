"""What one user may have at this node, and over all nodes: connections, subscriptions, commands.

Anonymous clients have no user, and only the limits of their connection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from typing import Any

from realtime.config.options import Config
from realtime.engine.limits import SharedLimits
from realtime.errors import DisconnectConnectionLimit
from realtime.metrics import Outage
from realtime.node.hub import Hub
from realtime.node.subscriber import Subscriber
from realtime.node.user_channels import UserChannels
from realtime.node.user_connections import UserConnections
from realtime.node.user_rates import user_rates
from realtime.protocol.messages import UserID
from realtime.timers import Timers


class UserLimits:
    """See the module. Belongs to the event loop of its node. What has no limit costs nothing."""

    def __init__(
        self,
        uid: str,
        config: Config,
        hub: Hub,
        limits: SharedLimits | None,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        outage: Outage,
    ) -> None:
        """`uid`: the ID of the node."""
        self._hub = hub
        here, everywhere = config.client_user_connection_limit, config.user_connection_limit
        self._most_connections = min((each for each in (here, everywhere) if each > 0), default=0)
        self._most_channels = config.user_channel_limit
        self._channels = UserChannels() if self._most_channels > 0 else None
        self._connections: UserConnections | None = None
        if limits is not None and everywhere > 0:
            self._connections = UserConnections(uid, hub, everywhere, limits, timers, spawn, outage)
        self.rates = user_rates(config, limits, timers, spawn, outage)

    def start(self) -> None:
        """Begin to count with other nodes."""
        if self._connections is not None:
            self._connections.start()

    def on_resumed(self) -> None:
        """Take into account that Redis may have lost what the node wrote."""
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
