"""Hooks: functions with which the site decides. Register them in `realtime.py` of your app.

    # chat/realtime.py
    from realtime import hooks

    @hooks.subscribe("room:{room}")
    def may_subscribe(request):
        return Room.objects.filter(name=request.params["room"], members=request.user).exists()

    @hooks.rpc
    async def add(request):
        return request.data["a"] + request.data["b"]

Hooks are synchronous functions, which run in worker threads and may use the database, or
coroutine functions. They have `hook_timeout` seconds. An exception other than `Error` and
`Disconnect` is error 100 for the client and an entry with its traceback in the log.
"""

from __future__ import annotations

from realtime.errors import Disconnect, Error, PermissionDenied
from realtime.hooks.answers import Allowed, Connected, Data, Put
from realtime.hooks.registry import (
    answer_end,
    answer_stop,
    connect,
    info,
    map_put,
    message,
    publish,
    refresh,
    rpc,
    subscribe,
)
from realtime.hooks.requests import (
    ConnectRequest,
    MapPutRequest,
    MessageRequest,
    PublishRequest,
    RefreshRequest,
    Request,
    RPCRequest,
    SubscribeRequest,
)

__all__ = [
    "Allowed",
    "ConnectRequest",
    "Connected",
    "Data",
    "Disconnect",
    "Error",
    "MapPutRequest",
    "MessageRequest",
    "PermissionDenied",
    "PublishRequest",
    "Put",
    "RPCRequest",
    "RefreshRequest",
    "Request",
    "SubscribeRequest",
    "answer_end",
    "answer_stop",
    "connect",
    "info",
    "map_put",
    "message",
    "publish",
    "refresh",
    "rpc",
    "subscribe",
]
