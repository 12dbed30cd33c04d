"""The overview: nodes, totals, the last hour, and warnings."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpResponse, JsonResponse

from .. import service
from ..charts import draw
from ..health import Health, Look, Remembered, watch
from ..measures import OF_SERVICE
from ..panel import PageRequest
from ..past import memory
from ..service import NodeStatus

COUNTED = 20_000
"""Users up to which those who are online are counted: the names of all are read for it."""
COUNT_REMEMBERED = 5.0
"""Seconds for which their number counts."""


class Totals(NamedTuple):
    """Totals over the nodes that are alive."""

    nodes: int
    silent: int
    """Nodes that are not among them."""
    clients: int
    users: int
    channels: int


class OverviewState(NamedTuple):
    """The state of the service."""

    nodes: list[NodeStatus]
    totals: Totals
    round_trip_ms: float | None
    as_of: datetime | None
    """When it was so, if the service does not answer now."""
    online: int | None = None
    """Users who are online, each once; None where that is not known."""


def show(request: PageRequest) -> HttpResponse:
    """Show the page, which also works without JavaScript."""
    look, health = read()
    # the page updates itself when the service is back
    return request.render(
        "overview.html",
        status=200 if look.unavailable is None else 503,
        unavailable=look.unavailable,
        state=state_of(look),
        health=health,
        findings=watch.findings(),
        **last_hour(look),
    )


def data(request: PageRequest) -> HttpResponse:
    """Send the page's script the live parts, every two seconds: ID of an element → HTML."""
    look, health = read()
    state, unavailable = state_of(look), look.unavailable
    parts = {
        "overview-live": request.fragment(
            "_overview_live.html", state=state, unavailable=unavailable, health=health
        ),
        "overview-nodes": request.fragment("_overview_nodes.html", state=state),
        "panel-health": request.fragment("_health.html", health=health),
    }
    return JsonResponse({"available": unavailable is None, "parts": parts})


def hour(request: PageRequest) -> HttpResponse:
    """Send the page's script the charts, every ten seconds."""
    html = request.fragment("_last_hour.html", **last_hour(watch.look()))
    return JsonResponse({"parts": {"overview-hour": html}})


def last_hour(look: Look) -> dict[str, Any]:
    """Return what the page shows of the last hour; what was read before, if nothing answers."""
    past = memory.known
    if look.unavailable is None:
        with suppress(service.Unavailable):
            past = memory.read()
    return {"past": past, "hour": None if past is None else draw(past, OF_SERVICE)}


def read() -> tuple[Look, Health]:
    """Read the state of the service, or why it does not answer, and judge it."""
    try:
        look = watch.saw(service.state())
    except service.Unavailable as unavailable:
        look = watch.look(failed=unavailable)
    return look, watch.health(look)


def state_of(look: Look) -> OverviewState | None:
    """Return the last state that was seen; None if there was none."""
    if look.seen is None:
        return None
    nodes, round_trip = look.seen.state
    totals = totals_of(nodes)
    return OverviewState(
        nodes,
        totals,
        None if round_trip is None else round_trip * 1000,
        None if look.unavailable is None else look.seen.at,
        None if totals.users > COUNTED or look.unavailable is not None else _online.get(),
    )


def _count() -> int | None:
    try:
        return service.online()
    except service.Unavailable:
        return None


_online = Remembered(COUNT_REMEMBERED, _count)


def totals_of(nodes: list[NodeStatus]) -> Totals:
    """Return the totals. A user or channel on two nodes counts twice."""
    alive = [node for node in nodes if node.alive]
    return Totals(
        nodes=len(alive),
        silent=len(nodes) - len(alive),
        clients=sum(node.num_clients for node in alive),
        users=sum(node.num_users for node in alive),
        channels=sum(node.num_channels for node in alive),
    )
