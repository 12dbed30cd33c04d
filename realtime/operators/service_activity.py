"""Activity: how busy the nodes are, their busiest channels, and namespaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from realtime.cluster.member import Member
from realtime.operators.questions import ActivityAnswer, AskActivity, NodeFigures, Order
from realtime.protocol.messages import ChannelName
from realtime.server_api.operations import numbers_of_subscribers


class BusyChannel(Struct, frozen=True):
    """A channel of the service."""

    channel: ChannelName
    subscribers: int
    """At the nodes that answered."""
    publications: float | None
    bytes: float | None = None
    """In a second, those of the data of publications; None if the nodes begin to count now."""


class BusyNamespace(Struct, frozen=True):
    """A namespace of the service."""

    namespace: str
    """"" for the top level."""
    subscribers: int
    delivered: dict[str, int]
    """Node ID → publications pushed to its clients since its start."""


class ServiceActivity(Struct, frozen=True):
    """How busy the service is."""

    nodes: list[NodeFigures]
    """Those that answered, by name."""
    missing: list[str]
    """Names of the nodes that did not answer."""
    channels: list[BusyChannel]
    """The busiest first."""
    namespaces: list[BusyNamespace]
    """Those with the most subscribers first."""


async def activity(
    member: Member,
    limit: int,
    order: Order = "publications",
    *,
    namespace: str | None = None,
    pattern: str = "",
) -> ServiceActivity:
    """Ask all nodes how busy they are. They count publications by channel for a while after this.

    A channel is among the busiest if it is one of the busiest at some node.

    Args:
        member: the member of the service that this process is.
        limit: the number of channels at most.
        order: what makes a channel one of the busiest.
        namespace: only channels of this namespace, "" for the top level; None: of all.
        pattern: only channels whose name matches it; "": all.
    """
    question = AskActivity(limit, order, namespace, pattern)
    answers, missing = await member.survey(question, ActivityAnswer)
    rates = _rates(answers)
    subscribers, missing_later = await numbers_of_subscribers(member, list(rates))
    channels = [
        BusyChannel(name, subscribers[name], *(rate or (None, None)))
        for name, rate in rates.items()
    ]
    channels.sort(key=_RANKS[order])
    figures = sorted(
        (answer.figures for answer in answers), key=lambda node: (node.name, node.node)
    )
    missing = sorted({*missing, *missing_later})
    return ServiceActivity(figures, missing, channels[:limit], _namespaces(answers))


_RANKS: dict[Order, Callable[[BusyChannel], tuple[float | str, ...]]] = {
    "publications": lambda each: (-(each.publications or 0), -each.subscribers, each.channel),
    "subscribers": lambda each: (-each.subscribers, -(each.publications or 0), each.channel),
    "bytes": lambda each: (-(each.bytes or 0), -each.subscribers, each.channel),
}


def _rates(answers: list[ActivityAnswer]) -> dict[ChannelName, tuple[float, float] | None]:
    """Return channel → publications and bytes in a second; None if nodes begin to count now.

    Every node with a subscriber gets each publication, so the highest figure counts, not the sum.
    """
    rates: dict[ChannelName, tuple[float, float] | None] = {}
    for answer in answers:
        for each in answer.channels:
            known = rates.get(each.channel)
            if not answer.seconds:
                rates[each.channel] = known
            else:
                number, size = known or (0.0, 0.0)
                rates[each.channel] = max(number, each.publications), max(size, each.bytes)
    return rates


def _namespaces(answers: list[ActivityAnswer]) -> list[BusyNamespace]:
    subscribers: Counter[str] = Counter()
    delivered: dict[str, dict[str, int]] = {}
    for answer in answers:
        for each in answer.namespaces:
            subscribers[each.namespace] += each.subscribers
            delivered.setdefault(each.namespace, {})[answer.node] = each.delivered
    names = sorted(delivered, key=lambda name: (-subscribers[name], name))
    return [BusyNamespace(name, subscribers[name], delivered[name]) for name in names]
