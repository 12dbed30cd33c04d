"""One connection for each user: the option `user_personal_single_connection`.

A client that has connected closes the other connections of its user, at every node, by a control
message that names the connection to keep:

    begin ──► PROTECTED ── finish: send the message ──► apply, in the order of the stream ──► done

Two clients of one user may connect at the same moment, at two nodes, and each would close the
other. So, of their messages, the later one decides:

- Every node applies these messages in the order of the stream, the sending node too.
- A protected client is not closed by the message of another one. It is protected from `begin`
  until its own message is applied.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from realtime.cluster.control import DisconnectUser
from realtime.config.options import Config
from realtime.errors import Disconnect, DisconnectConnectionLimit
from realtime.node.hub import Hub
from realtime.node.subscriber import Subscriber
from realtime.protocol.messages import ClientID


class SingleConnection:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self, config: Config, hub: Hub, send: Callable[[DisconnectUser], Awaitable[None]]
    ) -> None:
        """`send`: sends a control message to every node."""
        self._is_on = config.user_personal_single_connection and config.user_subscribe_to_personal
        self._hub = hub
        self._send = send
        self._protected: set[ClientID] = set()

    def begin(self, client: Subscriber) -> None:
        """Protect a client that connects, if its user may have one connection only."""
        if self._is_on and client.user:
            self._protected.add(client.id)

    async def finish(self, client: Subscriber) -> None:
        """Close the other connections of a client that `begin` protected.

        Raises:
            EngineUnavailable: the other nodes could not be reached.
        """
        if client.id in self._protected and not client.is_closing():
            code = DisconnectConnectionLimit.code
            await self._send(DisconnectUser(client.user, code, keep=client.id))

    def apply(self, message: DisconnectUser, disconnect: type[Disconnect]) -> None:
        """Close the connections of a user here, but for the one to keep and protected ones."""
        self._protected.discard(message.keep)
        for client in self._hub.connections(message.user):
            if client.id != message.keep and client.id not in self._protected:
                client.close(disconnect())

    def forget(self, client: ClientID) -> None:
        """Forget a client that is closed."""
        self._protected.discard(client)
