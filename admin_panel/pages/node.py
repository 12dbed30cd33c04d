"""One node: its figures, its last hour, its events."""

from __future__ import annotations

from contextlib import suppress

from django.http import HttpResponse

from .. import service
from ..charts import draw
from ..measures import OF_NODE
from ..panel import PageRequest
from ..past import Past, memory
from .events import rows_of
from .overview import read, state_of

EVENTS = 20
"""Events on the page; the page of events has more."""


def show(request: PageRequest) -> HttpResponse:
    """Show the node with the ID in the query."""
    uid = request.http.GET.get("node", "")
    look, health = read()
    state = state_of(look)
    node = next((each for each in state.nodes if each.uid == uid), None) if state else None
    past = memory.known
    if look.unavailable is None:
        with suppress(service.Unavailable):
            past = memory.read()
    own: Past | None = None if past is None else past.of_node(uid)
    missing = node is not None and past is not None and own is None
    return request.render(
        "node.html",
        status=503 if look.unavailable else 200 if node else 404,
        unavailable=look.unavailable,
        health=health,
        node=node,
        as_of=None if state is None else state.as_of,
        past=own,
        hour=None
        if own is None
        else draw(own, [plan for plan in OF_NODE if plan.name != "redis" or own.has("redis")]),
        missing=missing,
        rows=[] if own is None else rows_of(own.events)[:EVENTS],
    )
