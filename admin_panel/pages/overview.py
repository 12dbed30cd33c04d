"""The overview: nodes, totals, messages per second, and warnings."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from .. import service
from ..panel import PageRequest
from ..service import NodeStatus
from ..words import duration

SLOW_ROUND_TRIP = 0.05
"""Seconds of a round trip to Redis above which the page warns."""


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
    warnings: list[str]


def show(request: PageRequest) -> HttpResponse:
    """Show the page, which also works without JavaScript."""
    try:
        state = read()
    except service.Unavailable as unavailable:
        # the page updates itself when the service is back
        return request.render("overview.html", status=503, unavailable=unavailable)
    return request.render("overview.html", state=state)


def data(request: PageRequest) -> HttpResponse:
    """Send the page's script the live part and the counters, every two seconds."""
    try:
        state = read()
    except service.Unavailable as unavailable:
        html = request.fragment("_overview_live.html", unavailable=unavailable)
        return JsonResponse({"available": False, "html": html, "nodes": []})
    counters = [
        {
            "uid": node.uid,
            "published": node.messages_published,
            "delivered": node.messages_delivered,
            "last_seen_seconds": node.last_seen_seconds,
        }
        for node in state.nodes
        if node.alive
    ]
    html = request.fragment("_overview_live.html", state=state)
    return JsonResponse({"available": True, "html": html, "nodes": counters})


def read() -> State:
    """Read the state of the service.

    Raises:
        Unavailable: the service does not answer.
    """
    nodes = service.nodes()
    round_trip = service.round_trip()
    return State(
        nodes,
        totals_of(nodes),
        None if round_trip is None else round_trip * 1000,
        warnings_of(nodes, round_trip),
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


def warnings_of(nodes: list[NodeStatus], round_trip: float | None) -> list[str]:
    """Return problems that an operator should know of, as sentences."""
    warnings = [
        _("Node %(name)s has been silent for %(time)s.")
        % {"name": node.name, "time": duration(node.last_seen_seconds)}
        for node in nodes
        if not node.alive
    ]
    if round_trip is not None and round_trip > SLOW_ROUND_TRIP:
        warnings.append(
            _("Redis is slow: a round trip takes %(time)d ms.") % {"time": round_trip * 1000}
        )
    versions = sorted({node.version for node in nodes if node.alive})
    if len(versions) > 1:
        warnings.append(
            ngettext(
                "The nodes run %(count)d version: %(versions)s.",
                "The nodes run %(count)d different versions: %(versions)s.",
                len(versions),
            )
            % {"count": len(versions), "versions": ", ".join(versions)}
        )
    return warnings
