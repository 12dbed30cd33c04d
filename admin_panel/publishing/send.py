"""Publish into one or many channels, and say of each what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from django.contrib.admin.models import LogEntry
from django.db import router, transaction
from django.utils.translation import gettext as _

from realtime.errors import Error

from .. import audit, service
from ..operators import Operator


class Outcome(NamedTuple):
    """What became of the publication in one channel."""

    channel: str
    problem: str = ""
    """Why it was not published, in a sentence; "" where it was."""


class Sent(NamedTuple):
    """What became of a publication."""

    outcomes: list[Outcome]
    """In the order of the channels."""
    unavailable: service.Unavailable | None
    """What ended it early."""

    @property
    def published(self) -> list[str]:
        """The channels that have it."""
        return [outcome.channel for outcome in self.outcomes if not outcome.problem]

    @property
    def failed(self) -> list[str]:
        """The channels that do not have it, as far as is known."""
        return [outcome.channel for outcome in self.outcomes if outcome.problem]


def send(operator: Operator, channels: Sequence[str], data: str) -> Sent:
    """Publish data into channels, one after the other; each that has it is in the log.

    When the service stops answering, the channels that are left are not tried: each of them
    would wait for it anew.

    Args:
        data: JSON text. As it was typed: number spelling and key order reach the clients.

    Raises:
        ValueError: the service does not accept the data; nothing was published.
    """
    value = msgspec.Raw(data.encode())
    outcomes: list[Outcome] = []
    unavailable: service.Unavailable | None = None
    # one transaction, because a thousand of them would take seconds
    with transaction.atomic(using=router.db_for_write(LogEntry)):
        for channel in channels:
            if unavailable is not None:
                outcomes.append(Outcome(channel, _("Not tried.")))
                continue
            try:
                with operator.logged(audit.PUBLISH, channel, detail=data):
                    service.publish(channel, value)
            except Error as error:
                text = _("Error %(code)d: %(message)s.")
                problem = text % {"code": error.code, "message": error.message}
                outcomes.append(Outcome(channel, problem))
            except service.Unavailable as reason:
                unavailable = reason
                outcomes.append(Outcome(channel, f"{reason.title}."))
            else:
                outcomes.append(Outcome(channel))
    return Sent(outcomes, unavailable)
