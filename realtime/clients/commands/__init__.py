"""The client methods: one table, method → handler.

A handler decodes its params, asks the rules, does the work and replies. It raises `Error`
for an error reply and `Disconnect` for a close; anything else it raises is a failure of
ours, and the row says what the client is told then.

Spec: Client WebSocket protocol, Commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias

from realtime.clients.client import Client
from realtime.clients.commands import connection, publishing, queries, subscription
from realtime.errors import (
    Disconnect,
    DisconnectServerError,
    Error,
    InternalError,
)
from realtime.protocol.messages import Command, Method

Continuation: TypeAlias = Callable[[], Awaitable[None]]
"""The rest of a handler's work. It may run while the next command of the same method does."""


class Handler(NamedTuple):
    """How one method is served."""

    run: Callable[[Client, Command], Awaitable[Continuation | None]]
    failure: type[Error] | type[Disconnect] = InternalError
    """What the client is told when the engine, or our code, fails."""
    for_observers: bool = False
    """Whether observers may use it, who watch and do nothing else."""


HANDLERS: Mapping[Method, Handler] = {
    Method.CONNECT: Handler(connection.connect, DisconnectServerError),
    Method.SUBSCRIBE: Handler(subscription.subscribe, DisconnectServerError),
    Method.UNSUBSCRIBE: Handler(subscription.unsubscribe),
    Method.PUBLISH: Handler(publishing.publish),
    Method.PRESENCE: Handler(queries.presence),
    Method.PRESENCE_STATS: Handler(queries.presence_stats),
    Method.HISTORY: Handler(queries.history),
    Method.PING: Handler(connection.ping, for_observers=True),
    Method.SEND: Handler(publishing.send),
    Method.RPC: Handler(publishing.rpc),
    Method.REFRESH: Handler(connection.refresh, for_observers=True),
    Method.SUB_REFRESH: Handler(subscription.sub_refresh),
}
