"""What is published of an order of the shop, and who may see it."""

from __future__ import annotations

from typing import Any

from realtime.hooks import SubscribeRequest
from realtime.live.rows import permission
from realtime.node.hooks import NO_HANDSHAKE
from tests.live_models.shop.models import Order


def put(order: Order, **changed: Any) -> dict[str, Any]:
    shown = {"title": "an order", "total": "0.00", "tags": []} | changed
    return {"op": "put", "key": str(order.pk), "data": shown}


def removed(key: Any) -> dict[str, Any]:
    return {"op": "remove", "key": str(key)}


def channels_of(order: Order) -> list[str]:
    return [f"order:{order.pk}", f"team:{order.team}:orders"]


def everywhere(order: Order, **changed: Any) -> list[tuple[str, Any]]:
    return [(channel, put(order, **changed)) for channel in channels_of(order)]


def ask(channel: str = "team:7:orders", user: str = "17") -> Any:
    """Ask whether a user may subscribe to rows."""
    request = SubscribeRequest(client="C", user=user, handshake=NO_HANDSHAKE, channel=channel)
    return permission.decide(request)
