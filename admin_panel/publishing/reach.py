"""What a publication would reach: which channels, how many subscribers, what refuses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _

from realtime.config.options import ChannelOptions
from realtime.errors import Error

from .. import service
from ..operators import Operator
from .threshold import threshold

SHOWN = 100
"""Channels that are listed; of more, those that are refused come first."""


class Target(NamedTuple):
    """One channel of a publication."""

    channel: str
    options: ChannelOptions | None
    """None where the publication is refused."""
    problem: str = ""
    """Why it is refused, in a sentence."""
    forbidden: bool = False
    """Whether it is refused because of who asks."""
    subscribers: int = 0
    """Over all nodes. Not counted where it is refused."""


class Reach(NamedTuple):
    """All channels of a publication."""

    targets: list[Target]
    missing: list[str]
    """Names of nodes that did not say how many subscribers they have."""

    @property
    def refused(self) -> list[Target]:
        """The channels that cannot be published into."""
        return [target for target in self.targets if target.problem]

    @property
    def subscribers(self) -> int:
        """Of all channels; who is in two of them counts twice, and is reached twice."""
        return sum(target.subscribers for target in self.targets)

    @property
    def needs_confirmation(self) -> bool:
        """Whether to ask before it is sent; also when nobody knows how large it is."""
        passed = threshold().is_passed(self.subscribers, len(self.targets))
        return passed or bool(self.missing)

    @property
    def listed(self) -> list[Target]:
        """The channels to show."""
        if len(self.targets) <= SHOWN:
            return self.targets
        return sorted(self.targets, key=lambda target: not target.problem)[:SHOWN]

    @property
    def unlisted(self) -> int:
        """How many are not shown."""
        return len(self.targets) - len(self.listed)


def check(operator: Operator, channels: Sequence[str]) -> list[Target]:
    """Whether an operator can publish into channels; nobody is asked, nothing is counted."""
    return [_check(operator, channel) for channel in channels]


def count(targets: Sequence[Target]) -> Reach:
    """Ask the nodes how many subscribers the channels have that are not refused.

    Raises:
        Unavailable
    """
    names = [target.channel for target in targets if not target.problem]
    if not names:
        return Reach(list(targets), [])
    found = service.subscribers(names)
    counted = [
        target._replace(subscribers=found.get(target.channel, 0)) if not target.problem else target
        for target in targets
    ]
    return Reach(counted, found.missing)


def _check(operator: Operator, channel: str) -> Target:
    if not operator.may_publish(channel):
        return Target(channel, None, _("You may not publish into this channel."), True)
    try:
        options = service.options_of(channel)
    except Error as error:
        text = _("Error %(code)d: %(message)s.") % {"code": error.code, "message": error.message}
        return Target(channel, None, text)
    return Target(channel, options)
