"""Everything that the panel reads from the service and does with it.

An error that keeps the service from answering (the engine is away, a time limit has passed, this
process serves no clients) is turned into one exception, `Unavailable`, which pages show as a
state. A refusal of the service stays `realtime.Error`.

Acts on users and channels are functions of `realtime`, which pages call in `operator.logged`. Else
other modules of the panel import of the service only its ground: `config`, `channel_rules`,
`errors` and `payload`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from django.core import checks

import realtime
from realtime.channel_rules import check_channel
from realtime.checks import run_apart
from realtime.cluster.member import Member
from realtime.cluster.survey import ClientReport as ClientReport
from realtime.cluster.survey import ConnectionsAnswer, SurveyResult
from realtime.config import sources
from realtime.config.options import ChannelOptions
from realtime.engine.lists import Kind
from realtime.engine.maps import Page
from realtime.engine.nodes import NodeStatus as NodeStatus
from realtime.engine.versions import MAX_EPOCH_LENGTH as MAX_EPOCH_LENGTH
from realtime.errors import DISCONNECTS
from realtime.monitoring.pending_rows import Counter
from realtime.operators.questions import MAX_BUSY_CHANNELS, AskPast
from realtime.operators.questions import SLOT_SECONDS as SLOT_SECONDS
from realtime.operators.questions import Event as Event
from realtime.operators.questions import Order as Order
from realtime.operators.questions import PastAnswer as PastAnswer
from realtime.operators.service_activity import ServiceActivity, activity
from realtime.pages.page_config import endpoint as endpoint
from realtime.protocol.messages import UINT64_MAX as UINT64_MAX
from realtime.protocol.messages import ClientInfo as ClientInfo
from realtime.protocol.messages import Publication as Publication
from realtime.protocol.messages import StreamPosition
from realtime.protocol.v2.codes import CLOSES
from realtime.server_api import operations
from realtime.server_api.arguments import Position as Position
from realtime.server_api.connections import Subscribers, as_subscribers
from realtime.server_api.durable import Overview, PendingRows
from realtime.server_api.queries import Channels
from realtime.serving import serving

from .answering import Unavailable as Unavailable
from .answering import answering, unanswered

logger = logging.getLogger("realtime.admin_panel")

T = TypeVar("T")

READ_TIMEOUT = 1.0
"""Seconds for which a page waits for the engine, or for the event loop of the node."""


# reading


def read(work: Callable[[Member], Awaitable[T]]) -> T:
    """Ask the service, for a page that does not wait for longer than `READ_TIMEOUT`.

    Raises:
        Unavailable: the service does not answer.
    """
    with answering(reads=True):
        result = serving.call(work, timeout=READ_TIMEOUT)
    unanswered.note(getattr(result, "missing", ()))
    return result


class ServiceState(NamedTuple):
    """The nodes, and how the engine answers."""

    nodes: list[NodeStatus]
    """By name, including those whose heartbeat stopped recently."""
    round_trip: float | None
    """Seconds; None with the memory engine."""


def state() -> ServiceState:
    """Return the state of the service.

    Raises:
        Unavailable: the service does not answer.
    """

    async def ask(member: Member) -> ServiceState:
        nodes = sorted(await operations.nodes(member), key=lambda node: (node.name, node.uid))
        return ServiceState(nodes, await operations.round_trip(member))

    return read(ask)


def channels() -> Channels:
    """Return the channels that have a subscriber, sorted, and the nodes that are silent.

    Raises:
        Unavailable: the service does not answer.
    """
    listed = read(operations.channels)
    result = Channels(listed.names)
    result.missing = listed.missing
    return result


def busiest(order: Order, *, namespace: str | None, pattern: str) -> ServiceActivity:
    """Return the busiest channels, and the nodes that did not answer.

    Nodes count publications while they are asked: the first answer has no rates.

    Args:
        order: what makes a channel one of the busiest.
        namespace: only channels of this namespace, "" for the top level; None: of all.
        pattern: only channels whose name matches it; "": all.

    Raises:
        Unavailable: the service does not answer.
    """
    return read(
        lambda member: activity(
            member, MAX_BUSY_CHANNELS, order, namespace=namespace, pattern=pattern
        )
    )


def past() -> SurveyResult[PastAnswer]:
    """Return what the nodes keep of the last hour, and the nodes that did not answer.

    Raises:
        Unavailable: the service does not answer.
    """
    return read(lambda member: member.survey(AskPast(), PastAnswer))


def options_of(channel: str) -> ChannelOptions:
    """Return the options of a channel, from this process' configuration.

    Raises:
        Error: code 102 or 107, the name is not that of a channel.
    """
    return check_channel(channel, sources.current())


def subscribers(channels: Sequence[str]) -> Subscribers:
    """Return the number of subscribers by channel, and the nodes that did not answer.

    Raises:
        Unavailable: the service does not answer.
    """
    names = list(channels)
    return as_subscribers(names, read(lambda member: operations.subscribers(member, names)))


def connections(user: str) -> SurveyResult[ConnectionsAnswer]:
    """Return every node's report of a user's connections, and the nodes that did not answer.

    The infos stay JSON, as clients get it: `realtime.connections` decodes all of them, and fails
    for one that Python cannot decode.

    Raises:
        Unavailable: the service does not answer.
        Error: code 107, the user ID is empty.
    """
    return read(lambda member: operations.connections(member, user))


def presence(channel: str, options: ChannelOptions) -> dict[str, ClientInfo]:
    """Return the clients in a channel by client ID.

    The infos stay JSON, because a page shows few of them.

    Raises:
        Unavailable: the service does not answer.
        Error: code 108, the channel has no presence.
    """
    result = read(lambda member: operations.presence(member, channel, options=options))
    return dict(result.presence)


class Kept(NamedTuple):
    """The newest publications of a channel, and where its stream is."""

    publications: list[Publication]
    """Newest first."""
    top: Position


def history(channel: str, options: ChannelOptions, newest: int) -> Kept:
    """Return the newest publications that a channel keeps.

    The data stay JSON, as they were published.

    Args:
        newest: how many at most; 0: only the position is read.

    Raises:
        Unavailable: the service does not answer.
        Error: code 108, the channel keeps no history.
    """
    result = read(
        lambda member: operations.history(
            member, channel, limit=newest, reverse=True, options=options, joins=False
        )
    )
    assert result.position is not None, "an operation returns it"
    top = Position(result.position.offset, result.position.epoch)
    return Kept(list(result.publications), top)


def map_page(channel: str, limit: int) -> Page:
    """Return the first entries of a map, and its size.

    Raises:
        Unavailable: the service does not answer.
        Error: code 108, the channel is no map.
    """
    return read(lambda member: operations.map_page(member, channel, limit=limit))


def publication(channel: str, offset: int) -> Publication | None:
    """Return a publication that a channel keeps; None if it keeps it no longer.

    Raises:
        Unavailable: the service does not answer.
        Error: code 102 or 107, the name is not that of a channel; 108, it keeps no history.
    """
    before = StreamPosition(offset - 1, "")
    result = read(
        lambda member: operations.history(member, channel, limit=1, since=before, joins=False)
    )
    return next((each for each in result.publications if each.offset == offset), None)


def online() -> int | None:
    """Return the number of users who are online; None if the site has no app `realtime.online`.

    Raises:
        Unavailable: the service does not answer.
    """
    if serving.online is None:
        return None
    return read(lambda member: member.lists.size(Kind.USERS))


def keeps_pending() -> bool:
    """Return whether the site has the app `realtime.pending`."""
    return serving.pending is not None


def pending() -> PendingRows:
    """Return the rows of durable publications. Ask `keeps_pending` first."""
    assert serving.pending is not None
    return serving.pending


class PendingNumbers:
    """The numbers of pending rows, which the database is asked for in another thread."""

    def __init__(self) -> None:
        self._counter = Counter()

    def read(self) -> Overview | None:
        """Return the numbers; None if the database does not answer within `READ_TIMEOUT`."""
        return self._counter.overview(pending(), READ_TIMEOUT)


# acting


def publish(channel: str, data: object, **extras: Any) -> Position | None:
    """Publish at once, even in a transaction, so that a failure is raised here.

    Args:
        extras: tags, idempotency key and version, as `realtime.publish` takes them.

    Returns:
        What `realtime.publish` returns.

    Raises:
        Unavailable: the service does not answer.
        Error: code 102 or 107, the name is not that of a channel; 108, it keeps no history, and
            there is a version.
        ValueError: the data are not JSON that the service accepts.
    """
    with answering():
        return realtime.publish(channel, data, on_commit=False, **extras)


# the site


def close_reasons(code: str) -> list[str]:
    """Return the reasons of a close code: that for older clients, then that for newer ones."""
    reasons = [each.reason for each in DISCONNECTS if str(each.code) == code]
    reasons += [reason for number, reason in CLOSES.values() if str(number) == code and reason]
    return list(dict.fromkeys(reasons))


def check_messages() -> list[checks.CheckMessage]:
    """Run the system checks of the service and return those of their messages to be shown."""
    return [message for message in run_apart(logger) if not message.is_silenced()]
