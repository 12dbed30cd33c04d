"""Publish into one or many channels, and report the outcome for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from django.contrib.admin.models import LogEntry
from django.db import router, transaction
from django.utils.translation import gettext as _

from realtime.errors import Error, NotAvailable

from .. import audit, service
from ..operators import Operator
from ..service import Position
from .positions import is_own, record


class ChannelOutcome(NamedTuple):
    """The outcome of a publication in one channel."""

    channel: str
    problem: str = ""
    """The reason for a failure, as a sentence; "" for success."""
    may_be_done: bool = False
    """Whether it may be published all the same, because the failure is that no answer came."""


class SentPublications(NamedTuple):
    """The outcome of a publication."""

    outcomes: list[ChannelOutcome]
    """In the order of the channels."""
    unavailable: service.Unavailable | None
    """The failure after which the remaining channels were not tried."""

    @property
    def published(self) -> list[str]:
        """The channels that have the publication."""
        return [outcome.channel for outcome in self.outcomes if not outcome.problem]

    @property
    def logged(self) -> list[str]:
        """The channels that have the publication, or may have it."""
        return [each.channel for each in self.outcomes if each.may_be_done or not each.problem]

    @property
    def failed(self) -> list[str]:
        """The channels that do not have it, as far as known."""
        return [outcome.channel for outcome in self.outcomes if outcome.problem]


def send(operator: Operator, channels: Sequence[str], data: str, **extras: Any) -> SentPublications:
    """Publish data into channels, one after the other, and log them in one entry.

    The entry names those that have the publication, or may have it.

    When the service stops answering, the remaining channels are not tried: each would wait for
    it again.

    Args:
        operator: who publishes.
        channels: names.
        data: JSON text as it was typed, because its spelling reaches the clients.
        extras: further arguments of `service.publish`.

    Raises:
        ValueError: the service does not accept the data; nothing was published.
    """
    value = msgspec.Raw(data.encode())
    outcomes: list[ChannelOutcome] = []
    own: list[tuple[str, Position | None]] = []
    unavailable: service.Unavailable | None = None
    with transaction.atomic(using=router.db_for_write(LogEntry)):
        # first, so that nothing is published that cannot be logged
        entry = operator.log(audit.PUBLISH, channels, data)
        for channel in channels:
            if unavailable is not None:
                outcomes.append(ChannelOutcome(channel, _("Not tried.")))
                continue
            try:
                before = _top(channel, extras)
                position = service.publish(channel, value, **extras)
            except Error as error:
                text = _("Error %(code)d: %(message)s.")
                problem = text % {"code": error.code, "message": error.message}
                if isinstance(error, NotAvailable) and service.options_of(channel).map:
                    problem = _("It is a map, and the panel changes no keys.")
                outcomes.append(ChannelOutcome(channel, problem))
            except service.Unavailable as reason:
                unavailable = reason
                problem = _("It may have been published.") if reason.may_be_done else ""
                outcomes.append(
                    ChannelOutcome(channel, problem or f"{reason.title}.", reason.may_be_done)
                )
            else:
                outcomes.append(ChannelOutcome(channel))
                if position is not None and is_own(position, before):
                    own.append((channel, position))
        sent = SentPublications(outcomes, unavailable)
        if sent.failed:
            audit.narrow(entry, sent.logged)
        record(entry, own)
    return sent


def _top(channel: str, extras: Mapping[str, Any]) -> Position | None:
    """Return the top of a stream, if what is published may be a repetition; otherwise None."""
    if extras.get("once") is None and extras.get("version") is None:
        return None
    options = service.options_of(channel)
    return service.history(channel, options, 0).top if options.keeps_history else None
