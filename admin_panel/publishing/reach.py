"""The reach of a publication: its channels, their subscribers, and the reasons for refusals."""

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
"""Channels that are listed; refused ones come first if there are more."""


class Target(NamedTuple):
    """One channel of a publication."""

    channel: str
    options: ChannelOptions | None
    """None if the publication is refused."""
    problem: str = ""
    """The reason for a refusal, as a sentence."""
    forbidden: bool = False
    """Whether it is refused because of the operator's permissions."""
    subscribers: int = 0
    """Over all nodes; not counted if the publication is refused."""


class Reach(NamedTuple):
    """All channels of a publication."""

    targets: list[Target]
    missing: list[str]
    """Names of the nodes that did not answer."""

    @property
    def refused(self) -> list[Target]:
        """The channels that refuse the publication."""
        return [target for target in self.targets if target.problem]

    @property
    def subscribers(self) -> int:
        """Of all channels; a client in two of them counts twice, and receives it twice."""
        return sum(target.subscribers for target in self.targets)

    @property
    def needs_confirmation(self) -> bool:
        """Whether to ask for confirmation, which an unknown reach needs, too."""
        passed = threshold().is_passed(self.subscribers, len(self.targets))
        return passed or bool(self.missing)

    @property
    def listed(self) -> list[Target]:
        """The channels to list."""
        if len(self.targets) <= SHOWN:
            return self.targets
        return sorted(self.targets, key=lambda target: not target.problem)[:SHOWN]

    @property
    def unlisted(self) -> int:
        """Number of channels that are not listed."""
        return len(self.targets) - len(self.listed)


def check(operator: Operator, channels: Sequence[str]) -> list[Target]:
    """Check whether an operator can publish into channels, without asking the nodes."""
    return [_check(operator, channel) for channel in channels]


def count(targets: Sequence[Target]) -> Reach:
    """Ask the nodes for the subscribers of the channels that accept the publication.

    Raises:
        Unavailable: the service does not answer.
    """
    names = [target.channel for target in targets if not target.problem]
    if not names:
        return Reach(list(targets), [])
    numbers = service.subscribers(names)
    counted = [
        target._replace(subscribers=numbers.get(target.channel, 0))
        if not target.problem
        else target
        for target in targets
    ]
    return Reach(counted, numbers.missing)


def _check(operator: Operator, channel: str) -> Target:
    if not operator.may_publish(channel):
        return Target(channel, None, _("You may not publish into this channel."), True)
    try:
        options = service.options_of(channel)
    except Error as error:
        text = _("Error %(code)d: %(message)s.") % {"code": error.code, "message": error.message}
        return Target(channel, None, text)
    return Target(channel, options)
