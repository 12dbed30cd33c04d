"""Events in words: a sentence for each kind, and the groups by which operators filter them."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, ngettext_lazy

from .engine import server_name
from .past import OPTIONS_CHANGED, ServiceEvent

OPERATORS = "operators"
"""The group of what operators did, which the log tells, and no node."""

GROUPS: Mapping[str, tuple[str | Promise, frozenset[str]]] = {
    "nodes": (
        gettext_lazy("Nodes"),
        frozenset({"node_started", "node_stopped", "node_silent", "node_back", OPTIONS_CHANGED}),
    ),
    "redis": (gettext_lazy("Engine"), frozenset({"redis_away", "redis_back"})),
    "clients": (
        gettext_lazy("Clients"),
        frozenset({"mass_disconnect", "slow_clients", "refused"}),
    ),
    "users": (gettext_lazy("Users"), frozenset({"blocked", "unblocked"})),
    OPERATORS: (gettext_lazy("Operators"), frozenset()),
    "load": (gettext_lazy("Load"), frozenset({"late_loop"})),
    "errors": (gettext_lazy("Errors"), frozenset({"error"})),
    "warnings": (gettext_lazy("Warnings"), frozenset({"warning"})),
}
"""Group → its name, and its kinds."""

MARKED: Mapping[str, bool] = {
    "node_started": False,
    "node_stopped": False,
    "node_silent": True,
    "node_back": False,
    "redis_away": True,
    "redis_back": False,
    "mass_disconnect": True,
    OPTIONS_CHANGED: False,
}
"""Kinds that charts mark, and whether each is serious."""


SENTENCES: Mapping[str, str | Promise] = {
    "node_started": gettext_lazy("Node %(name)s started."),
    "node_stopped": gettext_lazy("Node %(name)s stopped. Its samples went with it."),
    "node_silent": gettext_lazy(
        "Node %(name)s fell silent. Its samples are missing until it answers."
    ),
    "node_back": gettext_lazy("Node %(name)s answers again."),
    OPTIONS_CHANGED: gettext_lazy(
        "Node %(name)s started with other options than the node before it."
    ),
    "redis_away": gettext_lazy("%(server)s was lost."),
    "redis_back": gettext_lazy("%(server)s is back."),
    "mass_disconnect": ngettext_lazy(
        "%(count)s connection ended at about the same time.",
        "%(count)s connections ended at about the same time.",
        "number",
    ),
    "slow_clients": ngettext_lazy(
        "%(count)s client was closed because it did not read fast enough.",
        "%(count)s clients were closed because they did not read fast enough.",
        "number",
    ),
    "refused": ngettext_lazy(
        "%(count)s connection was refused, because of a limit or of overload.",
        "%(count)s connections were refused, because of a limit or of overload.",
        "number",
    ),
    "late_loop": gettext_lazy("The event loop was late by up to %(count)s ms."),
    "blocked": gettext_lazy("User %(name)s was blocked."),
    "unblocked": gettext_lazy("User %(name)s is blocked no longer."),
}
"""Kind → what happened. Of other kinds the text of the event says it."""


def group_of(kind: str) -> str:
    """Return the group of a kind; "" for a kind of a newer version."""
    return next((name for name, (_label, kinds) in GROUPS.items() if kind in kinds), "")


def label_of(kind: str) -> str:
    """Return the name of the group of a kind."""
    group = group_of(kind)
    return str(GROUPS[group][0]) if group else kind


def sentence(seen: ServiceEvent) -> str:
    """Return what happened; a log line as it is."""
    event = seen.event
    text = SENTENCES.get(event.kind)
    if text is None:
        return event.text
    number = int(event.number)
    count = number_format(number, force_grouping=True)
    values = {"name": event.text, "count": count, "number": number, "server": server_name()}
    return str(text % values)
