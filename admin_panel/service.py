"""Everything that the panel reads from the service and does with it.

An error that keeps the service from answering (Redis is away, a time limit has passed, this
process serves no clients) is turned into one exception, `Unavailable`, which pages show as a
state. A refusal of the service stays `realtime.Error`.

Other modules of the panel import of the service only its ground: `config`, `channel_rules`,
`errors` and `payload`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core import checks
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

import realtime
from realtime import page_config
from realtime.channel_rules import check_channel
from realtime.checks import TAG
from realtime.cluster.survey import ClientReport, ConnectionsAnswer, SurveyResult
from realtime.config import sources
from realtime.config.options import ChannelOptions
from realtime.engine.base import NodeStatus
from realtime.errors import EngineUnavailable, InternalError, NotServing
from realtime.protocol.json_stream import Malformed
from realtime.protocol.messages import ClientInfo, Publication
from realtime.server_api import http, methods, operations
from realtime.server_api.overview import Subscribers
from realtime.serving import serving

__all__ = [
    "ClientInfo",
    "ClientReport",
    "NodeStatus",
    "Publication",
    "Unavailable",
]
"""Types that other modules of the panel import from here."""

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
    """Return the options of a channel, from this process' configuration.

    Raises:
        Error: code 102 or 107, the name is not that of a channel.
    """
    return check_channel(channel, sources.current())


def subscribers(channels: Sequence[str]) -> Subscribers:
    """Channel → subscribers over all nodes, and which nodes did not answer.

    Raises:
        Unavailable
    """
    with answering():
        return realtime.subscribers(channels)


def connections(user: str) -> SurveyResult[ConnectionsAnswer]:
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


def presence(channel: str, options: ChannelOptions) -> dict[str, ClientInfo]:
    """Return the clients in a channel by connection ID.

    The infos stay JSON, because a page shows few of them.

    Raises:
        Unavailable: the service does not answer.
        Error: code 108, the channel has no presence.
    """
    with answering():
        result = serving.call(
            lambda member: operations.presence(member, channel, options=options),
            async_name="apresence",
        )
    return dict(result.presence)


def history(channel: str, options: ChannelOptions, newest: int) -> list[Publication]:
    """Return the newest publications that a channel keeps, oldest first.

    The data stay JSON, as they were published.

    Args:
        newest: how many at most.

    Raises:
        Unavailable: the service does not answer.
        Error: code 108, the channel keeps no history.
    """
    with answering():
        result = serving.call(
            lambda member: operations.history(member, channel, limit=newest, options=options),
            async_name="ahistory",
        )
    return list(result.publications)


def publication(channel: str, offset: int) -> Publication | None:
    """Return a publication that a channel keeps; None if it keeps it no longer.

    Raises:
        Unavailable: the service does not answer.
        Error: code 102 or 107, the name is not that of a channel; 108, it keeps no history.
    """
    with answering():
        result = serving.call(
            lambda member: operations.history(member, channel, limit=1, since=offset),
            async_name="ahistory",
        )
    return next((each for each in result.publications if each.offset == offset), None)


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


# commands of the server API


def decode_params(method: str, params: bytes) -> Any:
    """Return the params of a command as the server API reads them; None if it refuses them.

    Args:
        method: a name of `methods.METHODS`.
        params: JSON text, or nothing.
    """
    decode = methods.METHODS[methods.METHOD_NUMBERS[method]].decode
    try:
        return None if decode is None else decode(params)
    except Malformed:
        return None


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


def run_commands(content_type: str, body: bytes) -> http.Response:
    """Answer one request of the server API, whose sender may use it. Failures are answers, too."""
    try:
        return serving.call(lambda member: http.handle(member, content_type, body))
    except NotServing as error:
        logger.error("A command cannot be served: %s", error)
        return http.UNAVAILABLE


# the site


def endpoint(request: HttpRequest) -> str:
    """Return the URL of the WebSocket, on the host of the request."""
    return page_config.endpoint(request)


def check_messages() -> list[checks.CheckMessage]:
    """Run the system checks of the service and return those of their messages to be shown."""
    return [message for message in checks.run_checks(tags=[TAG]) if not message.is_silenced()]
