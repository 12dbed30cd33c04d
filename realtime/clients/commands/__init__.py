"""The client methods: one table, method → handler.

A handler decodes the params, checks the rules in the order of the protocol, does the work and
replies. It raises `Error` for an error reply and `Disconnect` to close the connection. Any other
exception is a failure of the service; the row of the method says what the client gets then.

docs/protocol.md, 3.
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
    """The handler of one method."""

    run: Callable[[Client, Command], Awaitable[Continuation | None]]
    failure: type[Error] | type[Disconnect] = InternalError
    """What the client gets when the engine, a hook or the handler itself fails."""
    for_observers: bool = False
    """Whether observers may use the method."""


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
    Method.PONG: Handler(connection.pong, for_observers=True),
    Method.REFRESH: Handler(connection.refresh, for_observers=True),
    Method.SUB_REFRESH: Handler(subscription.sub_refresh),
}
