"""The checks of the commands of clients, in the order in which the client learns of them.

What comes after these tables is asked of others: a token, a hook of the site. `decider` says which
of them decides about a subscription.

docs/permissions.md; docs/protocol.md, 3.6, 3.15 and 3.16.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from realtime import channel_rules
from realtime.auth.claims import SubscribeToken
from realtime.clients.checking import Attempt, Check, Checks
from realtime.config.options import ChannelOptions
from realtime.errors import (
    BadRequest,
    Disconnect,
    Error,
    LimitExceeded,
    NotAvailable,
    PermissionDenied,
)
from realtime.protocol.messages import ChannelName, ClientID, UserID

# names


def _characters(attempt: Attempt) -> None:
    if not attempt.channel.isascii():
        raise BadRequest


def _length_to_subscribe(attempt: Attempt) -> None:
    channel_rules.check_length(attempt.channel, attempt.config, attempt.session.rules.too_long)


def _length(attempt: Attempt) -> None:
    if attempt.session.rules.always_checks_length:
        channel_rules.check_length(attempt.channel, attempt.config)


def _namespace(attempt: Attempt) -> None:
    attempt.options = channel_rules.options_of(attempt.channel, attempt.config)


def _pattern(attempt: Attempt) -> None:
    if attempt.options.channel_regex:  # without one, names are ASCII, which was checked
        channel_rules.check_pattern(attempt.channel, attempt.options, attempt.config)


_CHARACTERS = Check("characters", _characters)
_LENGTH = ("channel_max_length",)
_NAMES = (
    _CHARACTERS,
    Check("length", _length, _LENGTH, lambda a: a.session.rules.always_checks_length),
)
_OPTIONS = (
    Check("namespace", _namespace, ("namespaces",)),
    Check("pattern", _pattern, ("channel_regex",), lambda a: a.options.channel_regex != ""),
)

# subscribe


def _limit(attempt: Attempt) -> None:
    attempt.session.check_subscribe(attempt.channel)


def _room(attempt: Attempt) -> None:
    if attempt.room <= 0:
        raise LimitExceeded


def _token_given(attempt: Attempt) -> None:
    if attempt.lacks_token:
        raise PermissionDenied
    decides_alone = attempt.session.rules.any_channel_takes_token
    private = channel_rules.is_private(attempt.channel, attempt.config)
    attempt.by_token = private or (decides_alone and attempt.token != "")
    attempt.needs_rights = not (attempt.by_token and decides_alone)


def _client_side(attempt: Attempt) -> None:
    if attempt.needs_rights:
        channel_rules.check_client_side(attempt.options)


def _user(attempt: Attempt) -> None:
    if attempt.needs_rights:
        channel_rules.check_user(attempt.options, attempt.user, attempt.config)


def _listed(attempt: Attempt) -> None:
    if attempt.needs_rights:
        channel_rules.check_listed(attempt.channel, attempt.options, attempt.user, attempt.config)


def _is_listing(attempt: Attempt) -> bool:
    """Return whether the name of the channel lists users, and that counts."""
    return attempt.needs_rights and channel_rules.is_user_limited(
        attempt.channel, attempt.options, attempt.config
    )


SUBSCRIBE = Checks(
    _CHARACTERS,
    Check("length", _length_to_subscribe, _LENGTH),
    Check("limit", _limit, ("client_channel_limit",)),
    Check("room", _room, ("user_channel_limit",), lambda a: a.config.user_channel_limit > 0),
    *_OPTIONS,
    Check(
        "token given",
        _token_given,
        ("channel_private_prefix",),
        lambda a: channel_rules.is_private(a.channel, a.config),
    ),
    Check("client side", _client_side, ("server_side",), lambda a: a.needs_rights),
    Check(
        "user",
        _user,
        ("allow_subscribe_for_anonymous", "anonymous"),
        lambda a: a.needs_rights,
    ),
    Check(
        "listed",
        _listed,
        ("allow_user_limited_channels", "channel_user_boundary"),
        _is_listing,
    ),
)


class Decider(StrEnum):
    """What decides about a subscription that has passed the checks."""

    TOKEN = "token"
    SITE = "site"
    OPTIONS = "options"


def decider(
    attempt: Attempt, site_decides: Callable[[ChannelName, ChannelOptions], bool]
) -> Decider:
    """Return what decides about a subscription that has passed `SUBSCRIBE`.

    Args:
        attempt: the subscription.
        site_decides: whether a hook or an endpoint of the site is there for a channel.
    """
    if attempt.by_token:
        return Decider.TOKEN
    limited = channel_rules.is_user_limited(attempt.channel, attempt.options, attempt.config)
    if not limited and site_decides(attempt.channel, attempt.options):
        return Decider.SITE
    return Decider.OPTIONS


def _open(attempt: Attempt) -> None:
    channel_rules.check_unasked(attempt.channel, attempt.options, attempt.config)


OPEN = Checks(Check("open", _open, ("allow_subscribe_for_client", "server_side")))
"""Of a subscription about which the options decide, after `SUBSCRIBE`."""


def check_bearer(
    token: SubscribeToken,
    channel: ChannelName,
    client: ClientID,
    user: UserID,
    *,
    nameless: type[Error] | type[Disconnect],
    wrong: type[Error] | type[Disconnect],
) -> None:
    """Check that a verified subscription token is for a channel and a client.

    Args:
        token: the token.
        channel: the channel to which the client subscribes.
        client: its client ID.
        user: its user ID.
        nameless: what a token that names no channel leads to.
        wrong: what a token of another client, user or channel leads to.

    Raises:
        nameless, wrong: it is not.
    """
    if not token.channel:
        raise nameless
    if token.channel != channel or not token.is_for(client, user):
        raise wrong


# publish


def _publisher(attempt: Attempt) -> None:
    if attempt.session.user == "" and not (
        attempt.options.allow_publish_for_anonymous or attempt.config.client_insecure
    ):
        raise PermissionDenied


def _publishing(attempt: Attempt) -> None:
    options = attempt.options
    if not (
        options.allow_publish_for_client
        or options.allow_publish_for_subscriber
        or attempt.config.client_insecure
    ):
        raise PermissionDenied


def _subscribed_publisher(attempt: Attempt) -> None:
    options = attempt.options
    if options.allow_publish_for_client or attempt.is_subscribed:
        return
    # beyond the spec: client_insecure opens channels where publish is off, but not to others
    if options.subscribe_to_publish or not attempt.config.client_insecure:
        raise PermissionDenied


RIGHT_TO_PUBLISH = Checks(
    Check("publishing", _publishing, ("allow_publish_for_client", "publish")),
    Check("publisher", _publisher, ("allow_publish_for_anonymous", "publish")),
    Check(
        "subscribed publisher",
        _subscribed_publisher,
        ("allow_publish_for_client", "subscribe_to_publish", "publish"),
        lambda a: not a.options.allow_publish_for_client,
    ),
)
"""Private and user-limited names do not restrict publishing. Beyond the spec."""

NAME_TO_PUBLISH = Checks(*_NAMES, *_OPTIONS)
"""What comes before the data are looked at."""

PUBLISH = Checks(*NAME_TO_PUBLISH.all, *RIGHT_TO_PUBLISH.all)


# presence and history


def _presence(attempt: Attempt) -> None:
    if not attempt.options.presence:
        raise NotAvailable


def _shown_presence(attempt: Attempt) -> None:
    if attempt.options.presence_disable_for_client:
        raise attempt.session.rules.hidden


def _reader_of_presence(attempt: Attempt) -> None:
    if attempt.session.user == "" and not attempt.options.allow_presence_for_anonymous:
        raise PermissionDenied


def _subscribed_to_presence(attempt: Attempt) -> None:
    options = attempt.options
    if not (
        options.allow_presence_for_client
        or (options.allow_presence_for_subscriber and attempt.is_subscribed)
    ):
        raise PermissionDenied


def _history(attempt: Attempt) -> None:
    if not attempt.options.keeps_history:
        raise NotAvailable


def _shown_history(attempt: Attempt) -> None:
    if attempt.options.history_disable_for_client:
        raise attempt.session.rules.hidden


def _reader_of_history(attempt: Attempt) -> None:
    if attempt.session.user == "" and not attempt.options.allow_history_for_anonymous:
        raise PermissionDenied


def _subscribed_to_history(attempt: Attempt) -> None:
    options = attempt.options
    if not (
        options.allow_history_for_client
        or (options.allow_history_for_subscriber and attempt.is_subscribed)
    ):
        raise PermissionDenied


RIGHT_TO_PRESENCE = Checks(
    Check("presence", _presence, ("presence",)),
    Check(
        "shown presence",
        _shown_presence,
        ("allow_presence_for_subscriber", "presence_disable_for_client"),
    ),
    Check("reader of presence", _reader_of_presence, ("allow_presence_for_anonymous",)),
    Check(
        "subscribed to presence",
        _subscribed_to_presence,
        ("allow_presence_for_client", "allow_presence_for_subscriber"),
    ),
)

RIGHT_TO_HISTORY = Checks(
    Check("history", _history, ("history_size", "history_lifetime")),
    Check(
        "shown history",
        _shown_history,
        ("allow_history_for_subscriber", "history_disable_for_client"),
    ),
    Check("reader of history", _reader_of_history, ("allow_history_for_anonymous",)),
    Check(
        "subscribed to history",
        _subscribed_to_history,
        ("allow_history_for_client", "allow_history_for_subscriber"),
    ),
)

PRESENCE = Checks(*_NAMES, *_OPTIONS, *RIGHT_TO_PRESENCE.all)
HISTORY = Checks(*_NAMES, *_OPTIONS, *RIGHT_TO_HISTORY.all)
