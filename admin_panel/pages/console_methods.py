"""The methods of the server API in the console: description, example and permission.

    reading        needs `view`, as the console itself does
    publishing     needs the permission for every channel of the command
    other changes  need their own permission

The params are decoded as the API decodes them, so no spelling of them has one meaning here and
another one there.
"""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from .. import audit, commands
from ..operators import Operator


class MethodChange(NamedTuple):
    """The change that a method makes."""

    kind: audit.ActionKind
    needs: str
    """Codename of its permission."""
    about: str
    """The param with the channel, the channels or the user ID that it changes."""

    def may(self, operator: Operator) -> bool:
        """Return whether an operator may make such a change anywhere."""
        if self.kind is audit.PUBLISH:
            return operator.may_publish_somewhere
        return operator.has(self.needs)

    def targets(self, params: Struct) -> list[str]:
        """Return what a command changes. An empty name keeps its place in a broadcast: the API
        stops there."""
        found = getattr(params, self.about, None) or []
        return [found] if isinstance(found, str) else [name or "" for name in found]


class ConsoleMethod(NamedTuple):
    """One method, as the console offers it."""

    name: str
    meaning: str | Promise
    example: str
    """Params, JSON."""
    change: MethodChange | None = None
    """None for a method that only reads."""

    def may(self, operator: Operator) -> bool:
        """Return whether any command of this method is allowed."""
        return self.change is None or self.change.may(operator)


class Command(NamedTuple):
    """A command to run."""

    method: ConsoleMethod
    params: str
    """JSON text as the operator typed it."""
    targets: list[str]
    """The channels or the user ID that it changes; empty if it changes nothing."""
    detail: str = ""
    """For the log."""

    def is_allowed(self, operator: Operator) -> bool:
        """Return whether an operator may run it."""
        change = self.method.change
        if change is None:
            return True
        if not change.may(operator):
            return False
        return change.kind is not audit.PUBLISH or all(map(operator.may_publish, self.targets))


def command(method: ConsoleMethod, params: str) -> Command:
    """Return a command with its targets. One that the API refuses changes nothing: it has none."""
    if method.change is None:
        return Command(method, params, [])
    decoded = commands.decode_params(method.name, params.encode())
    if decoded is None:
        return Command(method, params, [])
    targets = method.change.targets(decoded)
    if not any(targets):
        return Command(method, params, [])
    if method.change.kind is audit.PUBLISH:
        return Command(method, params, targets, bytes(decoded.data).decode())
    if method.change.kind is audit.UNSUBSCRIBE:
        return Command(method, params, targets, decoded.channel or "")
    return Command(method, params, targets)


METHODS: tuple[ConsoleMethod, ...] = (
    ConsoleMethod("info", _("List the nodes that are alive."), "{}"),
    ConsoleMethod("channels", _("List the channels that have a subscriber."), "{}"),
    ConsoleMethod(
        "presence",
        _("List the clients that are subscribed to a channel."),
        '{"channel": "chat:lobby"}',
    ),
    ConsoleMethod(
        "presence_stats",
        _("Count the clients and users that are subscribed to a channel."),
        '{"channel": "chat:lobby"}',
    ),
    ConsoleMethod(
        "history", _("List the publications that a channel keeps."), '{"channel": "chat:lobby"}'
    ),
    ConsoleMethod(
        "publish",
        _("Publish into a channel."),
        '{"channel": "chat:lobby", "data": {"text": "hi"}}',
        MethodChange(audit.PUBLISH, "publish", "channel"),
    ),
    ConsoleMethod(
        "broadcast",
        _("Publish the same data into several channels."),
        '{"channels": ["chat:lobby", "news"], "data": {"text": "hi"}}',
        MethodChange(audit.PUBLISH, "publish", "channels"),
    ),
    ConsoleMethod(
        "unsubscribe",
        _("Unsubscribe a user from a channel, or from all of them if none is named."),
        '{"user": "42", "channel": "chat:lobby"}',
        MethodChange(audit.UNSUBSCRIBE, "unsubscribe", "user"),
    ),
    ConsoleMethod(
        "disconnect",
        _("Disconnect all connections of a user."),
        '{"user": "42"}',
        MethodChange(audit.DISCONNECT, "disconnect", "user"),
    ),
    ConsoleMethod(
        "history_remove",
        _("Remove the publications that a channel keeps."),
        '{"channel": "chat:lobby"}',
        MethodChange(audit.REMOVE_HISTORY, "remove_history", "channel"),
    ),
)
"""The methods in the order of the menu: those that only read first.

Not rpc: only clients call it.
"""

BY_NAME = {method.name: method for method in METHODS}
