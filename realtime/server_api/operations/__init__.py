"""Rules of the server API: one coroutine for each method, on a member of the service.

`publishing` changes streams, `users` acts on the connections of users, `queries`
ask. Data are payloads, and results are messages. `methods` speaks bytes above this, and `functions`
Python objects: both keep the same rules.

All of them raise:
    BadRequest: a name of a channel or user is missing, or is not one.
    NamespaceNotFound: the channel is in no namespace of the configuration.
    EngineUnavailable: Redis refused the command, or did not answer in time.

docs/protocol.md, 6.4.
"""

from realtime.errors import EngineUnavailable, Error, NoReply
from realtime.server_api.errors import EngineAway, OutcomeUnknown
from realtime.server_api.operations.publishing import (
    Checked,
    broadcast,
    check_kept,
    check_new,
    history_remove,
    publish,
    publish_checked,
    publish_many,
)
from realtime.server_api.operations.queries import (
    ListedChannels,
    channels,
    connections,
    history,
    info,
    nodes,
    numbers_of_subscribers,
    positions,
    presence,
    presence_stats,
    round_trip,
    subscribers,
)
from realtime.server_api.operations.users import (
    MAX_BLOCK_SECONDS,
    block,
    blocked,
    disconnect,
    refresh,
    subscribe,
    unblock,
    unsubscribe,
)

__all__ = [
    "MAX_BLOCK_SECONDS",
    "Checked",
    "ListedChannels",
    "api_error",
    "block",
    "blocked",
    "broadcast",
    "channels",
    "check_kept",
    "check_new",
    "connections",
    "disconnect",
    "history",
    "history_remove",
    "info",
    "nodes",
    "numbers_of_subscribers",
    "positions",
    "presence",
    "presence_stats",
    "publish",
    "publish_checked",
    "publish_many",
    "refresh",
    "round_trip",
    "subscribe",
    "subscribers",
    "unblock",
    "unsubscribe",
]


def api_error(error: Error | EngineUnavailable) -> Error:
    """Return the error with which the HTTP API answers."""
    if isinstance(error, Error):
        return error
    return OutcomeUnknown() if isinstance(error, NoReply) else EngineAway()
