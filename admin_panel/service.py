"""The service, as the panel sees it: all that pages read and do goes through here.

What keeps the service from answering (Redis is away, a time limit passed, this process serves
nobody) becomes one exception, `Unavailable`, which pages show as a state and not as a crash.
A refusal of the service stays what it is, `realtime.Error`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

import realtime
from realtime import channel_rules
from realtime.config import sources
from realtime.errors import EngineUnavailable, InternalError, NotAvailable, NotServing
from realtime.server_api import http, methods, operations
from realtime.serving import serving

if TYPE_CHECKING:
    from realtime.cluster.member import Member
    from realtime.cluster.survey import ConnectionsAnswer, Surveyed
    from realtime.config.options import ChannelOptions
    from realtime.engine.base import NodeStatus
    from realtime.protocol.messages import ClientInfo, Publication
    from realtime.server_api.overview import Subscribers

logger = logging.getLogger("realtime.admin_panel")


class Unavailable(Exception):
    """The service does not answer."""

    def __init__(self, title: str | Promise, advice: str | Promise, detail: str) -> None:
        """
        Args:
            title: what is wrong, in a few words.
            advice: what still works, and what to do.
            detail: the error itself, in English; it holds no secret.
        """
        super().__init__(detail)
        self.title = title
        self.advice = advice
        self.detail = detail


@contextmanager
def answering() -> Iterator[None]:
    """Turn what keeps the service from answering into `Unavailable`."""
    try:
        yield
    except EngineUnavailable as error:
        title = _("Redis cannot be reached")
        advice = _(
            "Clients stay connected; where history is recovered they catch up when Redis is back."
            " Until then nothing can be published, and lists and counts cannot be read."
        )
        raise Unavailable(title, advice, str(error)) from error
    except NotServing as error:
        title = _("This process serves no clients")
        advice = _("Open the panel in the process that serves them, or connect all with a Redis.")
        raise Unavailable(title, advice, str(error)) from error
    except InternalError as error:
        title = _("The service did not answer in time")
        advice = _("It may be busy. Clients stay connected; try again in a moment.")
        raise Unavailable(title, advice, str(error)) from error


# reading


def nodes() -> list[NodeStatus]:
    """The processes of the service, sorted by name; also those that fell silent lately.

    Raises:
        Unavailable
    """
    with answering():
        return sorted(realtime.nodes(), key=lambda node: (node.name, node.uid))


def round_trip() -> float | None:
    """Seconds that a round trip to Redis takes; None with the memory engine.

    Raises:
        Unavailable
    """
    with answering():
        return realtime.round_trip()


def channels() -> list[str]:
    """The channels that have a subscriber, sorted.

    Raises:
        Unavailable
    """
    with answering():
        return realtime.channels()


def options_of(channel: str) -> ChannelOptions:
    """The options in force for a channel that is to be published into; nobody is asked.

    Raises:
        Error: code 102 or 107, as publishing would.
    """
    return channel_rules.check_channel(channel, sources.current())


def subscribers(channels: Sequence[str]) -> Subscribers:
    """Channel → subscribers over all nodes, and which nodes did not answer.

    Raises:
        Unavailable
    """
    with answering():
        return realtime.subscribers(channels)


def connections(user: str) -> Surveyed[ConnectionsAnswer]:
    """What every node tells of a user's connections, and which nodes did not answer.

    The infos are JSON as clients get it: `realtime.connections` makes Python objects of all of
    them, and fails where one has no such form.

    Raises:
        Unavailable
        Error: code 107, the user ID is empty.
    """
    with answering():
        return serving.call(
            lambda member: operations.connections(member, user), async_name="aconnections"
        )


def presence(channel: str) -> dict[str, ClientInfo]:
    """Connection ID → who is in a channel. The infos are JSON as it was given: a page shows few.

    Raises:
        Unavailable
        Error: code 108 where presence is off.
    """
    with answering():
        found = serving.call(
            lambda member: operations.presence(member, channel), async_name="apresence"
        )
    return dict(found.presence)


def history(channel: str, newest: int) -> list[Publication]:
    """The newest publications a channel keeps, so many at most, oldest first.

    The data are JSON as it was published.

    Raises:
        Unavailable
        Error: code 108 where history is off.
    """

    async def read(member: Member) -> Sequence[Publication]:
        _check_history(member, channel)
        # what is published between the two reads comes on top
        top = (await member.broker.position(channel)).offset
        kept = await member.broker.history(channel, max(top - newest + 1, 0))
        return kept.publications[-newest:]

    with answering():
        return list(serving.call(read, async_name="ahistory"))


def publication(channel: str, offset: int) -> Publication | None:
    """A publication that a channel keeps; None where it is kept no longer.

    Raises:
        Unavailable
        Error: code 108 where history is off.
    """

    async def read(member: Member) -> Sequence[Publication]:
        _check_history(member, channel)
        return (await member.broker.history(channel, offset)).publications[:1]

    with answering():
        found = serving.call(read, async_name="ahistory")
    return found[0] if found and found[0].offset == offset else None


def _check_history(member: Member, channel: str) -> None:
    if not channel_rules.check_channel(channel, member.config).keeps_history:
        raise NotAvailable


def observer_token(channel: str, ttl: float) -> str:
    """A token with which the operator's browser watches a channel for `ttl` seconds.

    Raises:
        Error: code 102 or 107, the name is no channel's.
    """
    return realtime.observer_token(channel, ttl)


# acting


def publish(channel: str, data: object) -> None:
    """Publish at once, whatever transaction is open: a failure is known here and now.

    Raises:
        Unavailable
        Error
        ValueError: the data are no JSON the service accepts.
    """
    with answering():
        realtime.publish(channel, data, on_commit=False)


def remove_history(channel: str) -> None:
    """Forget what a channel keeps.

    Raises:
        Unavailable
        Error: code 108 where history is off.
    """
    with answering():
        realtime.history_remove(channel)


def run_commands(content_type: str, body: bytes) -> http.Response:
    """Answer one request of the server API, whose sender may use it. Failures are answers, too."""
    try:
        return serving.call(lambda member: http.handle(member, content_type, body))
    except NotServing as error:
        logger.error("A command cannot be served: %s", error)
        return http.UNAVAILABLE


def disconnect(user: str) -> None:
    """Disconnect a user's connections at every node; their clients do not come back.

    Raises:
        Unavailable
        Error: code 107, the user ID is empty.
    """
    with answering():
        realtime.disconnect(user)


def unsubscribe(user: str, channel: str = "") -> None:
    """Unsubscribe a user's connections at every node from a channel, or from all channels.

    Raises:
        Unavailable
        Error: code 102 or 107, the name is no channel's or the user ID is empty.
    """
    with answering():
        realtime.unsubscribe(user, channel)


# any command


def run_command(method: str, params: bytes) -> bytes:
    """Run a command of the server API; returns its result as JSON, as /api would.

    Args:
        method: a name of `methods.METHODS`.
        params: JSON text, or nothing.

    Raises:
        Unavailable
        Error
    """
    number = methods.METHOD_NUMBERS[method]
    with answering():
        return serving.call(lambda member: methods.run(member, number, params))
