"""Who may read a room."""

from __future__ import annotations

from chat.models import Message, Room
from realtime import hooks


@hooks.subscribe("chat:{room}")
def may_subscribe(request: hooks.SubscribeRequest) -> bool:
    """Members of the room."""
    return Room.objects.filter(
        name=request.params["room"], members__pk=request.user or None
    ).exists()


@hooks.rpc
def count(request: hooks.RPCRequest) -> int:
    """How much was written in a room."""
    return Message.objects.filter(room__name=request.data).count()
