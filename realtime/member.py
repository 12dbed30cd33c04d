"""Member: a process that takes part in the service. It can publish, ask and command.

A `Node` is a member that serves clients besides. Others (workers, shells, WSGI processes)
reach them through a shared engine.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import count

import msgspec

from realtime import control
from realtime.control import Control, DisconnectUser, EndLogins, Unsubscribe
from realtime.engine.base import NodeInfo, Store
from realtime.engine.keys import CONTROL
from realtime.errors import Disconnect, DisconnectForced
from realtime.options import ChannelOptions, Config
from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, ClientID, ClientInfo, Publication, UserID

CONTROL_OPTIONS = ChannelOptions(history_size=10_000, history_lifetime=600, history_recover=True)
"""What nodes are told is kept as publications are: a node that was cut off catches up."""


class Member:
    """A process of the service. Its coroutines run where its store does."""

    overlaps = False
    """Whether publications may be under way side by side, and still keep their order."""
    stopping = False
    """Whether this process is about to end and takes no commands any more."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self.uid = str(uuid.uuid4())
        self._publications = count(1)
        self._uid_prefix = self.uid.replace("-", "")[:20]

    async def publish(
        self,
        channel: ChannelName,
        data: Payload,
        options: ChannelOptions,
        info: ClientInfo | None = None,
    ) -> None:
        """Publish to a channel's subscribers in every process. `info`: of a publishing client."""
        await self.store.publish(channel, self._publication(data, options, info), options)

    async def publish_many(
        self, publications: Sequence[tuple[ChannelName, Payload, ChannelOptions]]
    ) -> list[BaseException | None]:
        """Publish into several channels; what failed, by index."""
        return await self.store.publish_many(
            [
                (name, self._publication(data, options), options)
                for name, data, options in publications
            ]
        )

    def _publication(
        self, data: Payload, options: ChannelOptions, info: ClientInfo | None = None
    ) -> Publication:
        uid = f"{self._uid_prefix}{next(self._publications):x}" if options.keeps_history else ""
        return Publication(data, info, 0, uid)

    async def unsubscribe_user(self, user: UserID, channel: ChannelName) -> None:
        """Unsubscribe a user's connections from a channel; "" means from all their channels."""
        await self._command(Unsubscribe(user, channel))

    async def disconnect_user(
        self, user: UserID, disconnect: Disconnect | None = None, *, keep: ClientID = ""
    ) -> None:
        """Close a user's connections in every process, but for the one called `keep`."""
        await self._command(DisconnectUser(user, (disconnect or DisconnectForced()).code, keep))

    async def end_logins(
        self, user: UserID, login: str, disconnect: Disconnect | None = None
    ) -> None:
        """Close a user's connections of one login session; "" looks again at all of theirs."""
        await self._command(EndLogins(user, login, (disconnect or DisconnectForced()).code))

    async def nodes(self) -> list[NodeInfo]:
        """Every node that is alive, by name."""
        return sorted(await self.store.nodes(), key=lambda node: node.name)

    async def _command(self, command: Control) -> None:
        """Tell every node to do something."""
        command = msgspec.structs.replace(command, origin=self.uid)
        await self.publish(CONTROL, control.encode(command), CONTROL_OPTIONS)
