"""The feeds of the shop. Not in a module `realtime`, as only some tests have them."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from realtime import live
from realtime.hooks import SubscribeRequest
from tests.live_models.shop.models import Invoice, Node, Order

allowed: set[tuple[str, str]] = set()
"""Pairs of a user ID and a team."""


@live.model(Order)
class LiveOrder(live.Feed):
    channels = ("order:{pk}", "team:{team}:orders")
    fields = ("title", "total", "tags")

    @staticmethod
    def may_view(request: SubscribeRequest, pk: str | None = None, team: str | None = None) -> Any:
        return (request.user, team) in allowed if team else None


@live.model(Node)
class LiveNode(live.Feed):
    channels = ("nodes:all",)
    only_ids = True

    @staticmethod
    async def may_view(request: SubscribeRequest) -> bool:
        return await sync_to_async(lambda: request.user == "17")()


def shown_names(invoice: Any) -> list[str]:
    shown = (invoice.customer, getattr(invoice.customer, "company", None), invoice.clerk)
    return [getattr(each, "name", "") for each in shown]


@live.model(Invoice)
class LiveInvoice(live.Feed):
    channels = ("invoice:{pk}", "customer:{customer_id}:invoices")
    follows = ("customer__company", "clerk")
    serializer = shown_names

    def rows(self, queryset: Any) -> Any:
        return queryset.select_related("customer__company", "clerk")

    @staticmethod
    def may_view(request: SubscribeRequest, **_: Any) -> bool:
        return True
