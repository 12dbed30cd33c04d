"""What a check says."""

from __future__ import annotations

from collections.abc import Callable

from realtime.clients.checks import (
    RIGHT_TO_HISTORY,
    RIGHT_TO_PRESENCE,
    RIGHT_TO_PUBLISH,
    Attempt,
    Checks,
)
from realtime.clients.rules import FIRST, SECOND, Rules
from realtime.clients.session import ClientSession, Subscription
from realtime.config.options import ChannelOptions, Config
from realtime.errors import Error, NotAvailable, PermissionDenied
from realtime.node.hooks import Identity


def outcome(check: Callable[..., None], *arguments: object) -> type[Error] | None:
    """The error that the check raises with these arguments, or None."""
    try:
        check(*arguments)
    except Error as error:
        return type(error)
    return None


def check_publish(options: ChannelOptions, user: str, subscribed: bool, config: Config) -> None:
    """Check the right to publish."""
    RIGHT_TO_PUBLISH.decide(_attempt(options, user, subscribed, config))


def check_presence(
    options: ChannelOptions, user: str, subscribed: bool, hidden: type[Error] = NotAvailable
) -> None:
    """Check the right to read presence; `hidden`: what clients get where none may."""
    _check_reading(RIGHT_TO_PRESENCE, options, user, subscribed, hidden)


def check_history(
    options: ChannelOptions, user: str, subscribed: bool, hidden: type[Error] = NotAvailable
) -> None:
    """Check the right to read history, as `check_presence`."""
    _check_reading(RIGHT_TO_HISTORY, options, user, subscribed, hidden)


def _check_reading(
    checks: Checks, options: ChannelOptions, user: str, subscribed: bool, hidden: type[Error]
) -> None:
    rules = SECOND if hidden is PermissionDenied else FIRST
    checks.decide(_attempt(options, user, subscribed, Config(), rules))


def _attempt(
    options: ChannelOptions, user: str, subscribed: bool, config: Config, rules: Rules = FIRST
) -> Attempt:
    session = ClientSession(config, 0.0, rules)
    session.connected(Identity(user), None)
    if subscribed:
        session.subscriptions["a"] = Subscription(options)
    return Attempt("a", session, config, options=options)
