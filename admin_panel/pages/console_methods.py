"""What the console knows of the methods of the server API: words, an example, and who may.

    reading        needs `view`, as the console itself does
    publishing     needs to be allowed in every channel the command names
    other changes  need their own permission

Every command is looked at by the decoder that the API uses, so no spelling of the params says
one thing here and another there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from .. import audit, service
from ..operators import Operator


class Change(NamedTuple):
    """What a method changes, and who may have it changed."""

    kind: audit.Kind
    may: Callable[[Operator], bool]
    targets: Callable[[Struct], list[str | None]]
    """What a command is about: channels, or a user ID."""


class Method(NamedTuple):
    """One method, as the console offers it."""

    name: str
    meaning: str | Promise
    example: str
    """Params, JSON."""
    change: Change | None = None
    """None: it only reads."""

    def may(self, operator: Operator) -> bool:
        """Whether some command of this method is allowed."""
        return self.change is None or self.change.may(operator)


class Command(NamedTuple):
    """A command that is to be run."""

    method: Method
    params: str
    """JSON text, as it was typed."""
    targets: list[str]
    """What it changes; empty where it changes nothing."""
    detail: str = ""
    """For the log."""

    def is_allowed(self, operator: Operator) -> bool:
        """Whether this operator may run it."""
        change = self.method.change
        if change is None:
            return True
        if not change.may(operator):
            return False
        return change.kind is not audit.PUBLISH or all(map(operator.may_publish, self.targets))


def command(method: Method, params: str) -> Command:
    """Look at a command. One that the API would refuse has no targets: it changes nothing."""
    if method.change is None:
        return Command(method, params, [])
    decoded = service.decode_params(method.name, params.encode())
    if decoded is None:
        return Command(method, params, [])
    # an empty name in a broadcast is refused where it stands, so it keeps its place
    targets = [name or "" for name in method.change.targets(decoded)]
    if not any(targets):
        return Command(method, params, [])
    if method.change.kind is audit.PUBLISH:
        return Command(method, params, targets, bytes(decoded.data).decode())
    if method.change.kind is audit.UNSUBSCRIBE:
        return Command(method, params, targets, decoded.channel or "")
    return Command(method, params, targets)


def _may_publish(operator: Operator) -> bool:
    return operator.may_publish_somewhere


METHODS: tuple[Method, ...] = (
    Method("info", _("The nodes that are alive."), "{}"),
    Method("channels", _("The channels that have a subscriber."), "{}"),
    Method("presence", _("Who is subscribed to a channel."), '{"channel": "chat:lobby"}'),
    Method(
        "presence_stats",
        _("How many clients and users are subscribed to a channel."),
        '{"channel": "chat:lobby"}',
    ),
    Method("history", _("The publications that a channel keeps."), '{"channel": "chat:lobby"}'),
    Method(
        "publish",
        _("Publish into a channel."),
        '{"channel": "chat:lobby", "data": {"text": "hi"}}',
        Change(audit.PUBLISH, _may_publish, lambda params: [getattr(params, "channel", None)]),
    ),
    Method(
        "broadcast",
        _("Publish the same data into several channels."),
        '{"channels": ["chat:lobby", "news"], "data": {"text": "hi"}}',
        Change(audit.PUBLISH, _may_publish, lambda params: getattr(params, "channels", None) or []),
    ),
    Method(
        "unsubscribe",
        _("Unsubscribe a user from a channel, or from all of them if none is named."),
        '{"user": "42", "channel": "chat:lobby"}',
        Change(
            audit.UNSUBSCRIBE,
            lambda operator: operator.may_unsubscribe,
            lambda params: [getattr(params, "user", None)],
        ),
    ),
    Method(
        "disconnect",
        _("Disconnect all connections of a user."),
        '{"user": "42"}',
        Change(
            audit.DISCONNECT,
            lambda operator: operator.may_disconnect,
            lambda params: [getattr(params, "user", None)],
        ),
    ),
    Method(
        "history_remove",
        _("Forget the publications that a channel keeps."),
        '{"channel": "chat:lobby"}',
        Change(
            audit.REMOVE_HISTORY,
            lambda operator: operator.may_remove_history,
            lambda params: [getattr(params, "channel", None)],
        ),
    ),
    Method(
        "rpc",
        _("Answered with an error here: only clients have it."),
        '{"method": "name", "params": {}}',
    ),
)
"""In the order in which they are offered: those that only read first."""

BY_NAME = {method.name: method for method in METHODS}
