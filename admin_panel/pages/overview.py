"""The overview: nodes, totals, messages per second, and warnings."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.http import HttpResponse, JsonResponse

from .. import service
from ..health import Health, Look, watch
from ..panel import PageRequest
from ..service import NodeStatus


class Totals(NamedTuple):
    """Totals over the nodes that are alive."""

    nodes: int
    silent: int
    """Nodes that are not among them."""
    clients: int
    users: int
    channels: int


class State(NamedTuple):
    """The state of the service."""

    nodes: list[NodeStatus]
    totals: Totals
    round_trip_ms: float | None
    as_of: datetime | None
    """When it was so, if the service does not answer now."""


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
    )


def data(request: PageRequest) -> HttpResponse:
    """Send the page's script the live part and the counters, every two seconds."""
    look, health = read()
    state = state_of(look)
    counters = [
        {
            "uid": node.uid,
            "published": node.messages_published,
            "delivered": node.messages_delivered,
            "last_seen_seconds": node.last_seen_seconds,
        }
        for node in (state.nodes if state is not None and look.unavailable is None else ())
        if node.alive
    ]
    html = request.fragment(
        "_overview_live.html", state=state, unavailable=look.unavailable, health=health
    )
    line = request.fragment("_health.html", health=health)
    return JsonResponse(
        {
            "available": look.unavailable is None,
            "html": html,
            "health": line,
            "nodes": counters,
        }
    )


def read() -> tuple[Look, Health]:
    """Read the state of the service, or why it does not answer, and judge it."""
    try:
        look = watch.saw(service.state())
    except service.Unavailable as unavailable:
        look = watch.look(failed=unavailable)
    return look, watch.health(look)


def state_of(look: Look) -> State | None:
    """Return the last state that was seen; None if there was none."""
    if look.seen is None:
        return None
    nodes, round_trip = look.seen.state
    return State(
        nodes,
        totals_of(nodes),
        None if round_trip is None else round_trip * 1000,
        None if look.unavailable is None else look.seen.at,
    )


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
