"""What a command of a client must pass, as tables, in the order in which the client learns of it.

    command ──► Attempt ──► Checks.decide ──► each check passes, or raises what the client gets
    operator ─► Attempt ──► Checks.explain ─► the same checks, each with its outcome

There is one table for each kind of command, and both ways go by it. So what operators read is what
clients get. What comes after these tables is asked of others: a token, a hook of the site.
`decided_by` says which of them decides about a subscription.

Pure. docs/authentication.md; docs/protocol.md, 3.6, 3.15 and 3.16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from realtime import channel_rules
from realtime.auth.claims import SubscribeToken
from realtime.clients.rules import Rules
from realtime.clients.session import ClientSession
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    BadRequest,
    Disconnect,
    Error,
    LimitExceeded,
    NotAvailable,
    PermissionDenied,
)
from realtime.protocol.messages import ChannelName, ClientID, UserID

Refusal: TypeAlias = type[Error] | type[Disconnect]
"""What a command leads to that is refused."""

_UNKNOWN = ChannelOptions()


class Attempt(Struct, gc=False):
    """A command about a channel. Checks fill in what later ones need."""

    channel: ChannelName
    session: ClientSession
    config: Config
    token: str = ""
    """A subscription token; "" for none."""
    room: float = math.inf
    """How many more subscriptions the user may have."""
    options: ChannelOptions = _UNKNOWN
    """Those of the channel, as soon as its namespace is found."""
    by_token: bool = False
    """Whether a token, and no hook, decides about the subscription."""
    needs_rights: bool = True
    """Whether the options must let the client subscribe, also where a token decides."""

    @property
    def user(self) -> UserID:
        """The user ID of the client."""
        return self.session.user

    @property
    def lacks_token(self) -> bool:
        """Whether only a token could open the channel, and there is none."""
        return (
            self.session.rules.any_channel_takes_token
            and not self.token
            and channel_rules.is_private(self.channel, self.config)
        )

    @property
    def is_subscribed(self) -> bool:
        """Whether the client is subscribed to the channel."""
        return self.channel in self.session.subscriptions


class Outcome(StrEnum):
    """What becomes of a check."""

    PASSED = "passed"
    REFUSED = "refused"
    NOT_ASKED = "not asked"
    """An earlier check refuses."""
    NEEDLESS = "needless"
    """It is not about such a channel or client."""
    UNKNOWN = "unknown"
    """The site decides, and was not asked."""


class Step(NamedTuple):
    """A check, and what becomes of it."""

    name: str
    outcome: Outcome
    options: tuple[str, ...] = ()
    """The options that decide it: names of one right, the newer one first."""
    error: Error | Disconnect | None = None
    """What the client gets."""


class Check(NamedTuple):
    """One check."""

    name: str
    run: Callable[[Attempt], None]
    """Raises what the client gets."""
    options: tuple[str, ...] = ()
    """See `Step`."""
    applies: Callable[[Attempt], bool] | None = None
    """Whether it is about such an attempt at all, once it has passed; None: always."""


class Checks:
    """The checks of one kind of command, in their order."""

    def __init__(self, *checks: Check) -> None:
        self.all = checks
        self._runs = tuple(check.run for check in checks)

    def decide(self, attempt: Attempt) -> None:
        """Check an attempt.

        Raises:
            Error, Disconnect: it is refused.
        """
        for run in self._runs:
            run(attempt)

    def explain(self, attempt: Attempt) -> list[Step]:
        """Return every check with what becomes of it."""
        steps: list[Step] = []
        refused = False
        for name, run, options, applies in self.all:
            if refused:
                steps.append(Step(name, Outcome.NOT_ASKED, options))
                continue
            try:
                run(attempt)
            except (Error, Disconnect) as error:
                refused = True
                steps.append(Step(name, Outcome.REFUSED, options, error.with_traceback(None)))
            else:
                about = applies is None or applies(attempt)
                steps.append(Step(name, Outcome.PASSED if about else Outcome.NEEDLESS, options))
        return steps


# names


def _characters(attempt: Attempt) -> None:
    if not attempt.channel.isascii():
        raise BadRequest


def _length(attempt: Attempt) -> None:
    channel_rules.check_length(attempt.channel, attempt.config, attempt.session.rules.too_long)


def _namespace(attempt: Attempt) -> None:
    attempt.options = channel_rules.options_of(attempt.channel, attempt.config)


def _pattern(attempt: Attempt) -> None:
    if attempt.options.channel_regex:  # without one, names are ASCII, which was checked
        channel_rules.check_pattern(attempt.channel, attempt.options, attempt.config)


_NAMES = (Check("characters", _characters), Check("length", _length, ("channel_max_length",)))
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
    *_NAMES,
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


class DecidedBy(StrEnum):
    """What decides about a subscription that has passed the checks."""

    TOKEN = "token"
    SITE = "site"
    OPTIONS = "options"


def decided_by(
    attempt: Attempt, site_decides: Callable[[ChannelName, ChannelOptions], bool]
) -> DecidedBy:
    """Return what decides about a subscription that has passed `SUBSCRIBE`.

    Args:
        attempt: the subscription.
        site_decides: whether a hook or an endpoint of the site is there for a channel.
    """
    if attempt.by_token:
        return DecidedBy.TOKEN
    limited = channel_rules.is_user_limited(attempt.channel, attempt.options, attempt.config)
    if not limited and site_decides(attempt.channel, attempt.options):
        return DecidedBy.SITE
    return DecidedBy.OPTIONS


def _open(attempt: Attempt) -> None:
    channel, options, config = attempt.channel, attempt.options, attempt.config
    shown = channel_rules.mapped_channel(channel, config) if options.map else None
    if shown is None:
        channel_rules.check_unasked(channel, options, config)
    else:
        PRESENCE.decide(Attempt(shown, attempt.session, config))


OPEN = Checks(Check("open", _open, ("allow_subscribe_for_client", "server_side")))
"""Of a subscription about which the options decide, after `SUBSCRIBE`. A presence map is open to
clients that may read the presence that it shows."""


def check_bearer(
    token: SubscribeToken,
    channel: ChannelName,
    client: ClientID,
    user: UserID,
    rules: Rules,
    *,
    nameless: Refusal = PermissionDenied,
    wrong: Refusal | None = None,
) -> None:
    """Check that a verified subscription token is for a channel and a client.

    Args:
        token: the token.
        channel: the channel to which the client subscribes.
        client: its client ID.
        user: its user ID.
        rules: of the generation that the client speaks.
        nameless: what a token that names no channel leads to.
        wrong: what a token of another client, user or channel leads to; None: as the rules say.

    Raises:
        nameless, wrong: it is not.
    """
    if not token.channel:
        raise nameless
    is_bearer = token.is_for(client, user, absent_is_anonymous=rules.absent_is_anonymous)
    if token.channel != channel or not is_bearer:
        raise wrong or rules.wrong_token


# publish


def _publisher(attempt: Attempt) -> None:
    if attempt.user == "" and not (
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


def _no_map(attempt: Attempt) -> None:
    if attempt.options.map:
        raise NotAvailable


PUBLISH = Checks(
    *NAME_TO_PUBLISH.all,
    Check("no map", _no_map, ("map",), lambda a: a.options.map != ""),
    *RIGHT_TO_PUBLISH.all,
)

# put, remove


def _map(attempt: Attempt) -> None:
    if not attempt.options.map:
        raise NotAvailable


def _putting(attempt: Attempt) -> None:
    if not (attempt.options.map_publish or attempt.config.client_insecure):
        raise PermissionDenied


def _subscribed_putter(attempt: Attempt) -> None:
    if attempt.options.map_publish == "subscriber" and not attempt.is_subscribed:
        raise PermissionDenied


def _user_as_key(attempt: Attempt) -> None:
    if attempt.options.map_key == "user" and not attempt.user:
        raise PermissionDenied


RIGHT_TO_PUT = Checks(
    Check("putting", _putting, ("map_publish",)),
    Check("publisher", _publisher, ("allow_publish_for_anonymous", "publish")),
    Check("subscribed putter", _subscribed_putter, ("map_publish",)),
    Check("user as key", _user_as_key, ("map_key",)),
)

PUT = Checks(*NAME_TO_PUBLISH.all, Check("map", _map, ("map",)), *RIGHT_TO_PUT.all)


# presence and history


def _right_to_read(
    what: Literal["presence", "history"], keeps: str, options: tuple[str, ...]
) -> Checks:
    """Return the checks of a right to read.

    Args:
        what: "presence" or "history", as the names of the options have it.
        keeps: the attribute of the options that says whether the channel has any.
        options: those that decide about that.
    """
    anonymous, for_client = f"allow_{what}_for_anonymous", f"allow_{what}_for_client"
    for_subscriber, hidden = f"allow_{what}_for_subscriber", f"{what}_disable_for_client"

    def unless_insecure(run: Callable[[Attempt], None]) -> Callable[[Attempt], None]:
        def check(attempt: Attempt) -> None:
            if not (attempt.config.client_insecure and attempt.session.rules.insecure_reads):
                run(attempt)

        return check

    def kept(attempt: Attempt) -> None:
        if not getattr(attempt.options, keeps):
            raise NotAvailable

    def shown(attempt: Attempt) -> None:
        if getattr(attempt.options, hidden):
            raise attempt.session.rules.hidden

    def reader(attempt: Attempt) -> None:
        if attempt.user == "" and not getattr(attempt.options, anonymous):
            raise PermissionDenied

    def subscribed(attempt: Attempt) -> None:
        for_subscribers = attempt.is_subscribed and getattr(attempt.options, for_subscriber)
        if not (for_subscribers or getattr(attempt.options, for_client)):
            raise PermissionDenied

    return Checks(
        Check(what, kept, options),
        Check(f"shown {what}", unless_insecure(shown), (for_subscriber, hidden)),
        Check(f"reader of {what}", unless_insecure(reader), (anonymous,)),
        Check(f"subscribed to {what}", unless_insecure(subscribed), (for_client, for_subscriber)),
    )


RIGHT_TO_PRESENCE = _right_to_read("presence", "presence", ("presence",))
RIGHT_TO_HISTORY = _right_to_read("history", "keeps_history", ("history_size", "history_lifetime"))
PRESENCE = Checks(*_NAMES, *_OPTIONS, *RIGHT_TO_PRESENCE.all)
HISTORY = Checks(*_NAMES, *_OPTIONS, *RIGHT_TO_HISTORY.all)
