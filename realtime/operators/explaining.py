"""Explaining: why a client may do something, or not, check by check.

The checks are those of real commands (`clients.checks`), made for a client that is described and
not connected. What only the site knows is not asked: a hook may have side effects.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from realtime import channel_rules
from realtime.auth.claims import ExpiredToken, InvalidToken, SubscribeToken
from realtime.auth.keys import KeysUnavailable
from realtime.auth.verifier import Verifier
from realtime.clients.checks import (
    HISTORY,
    OPEN,
    PRESENCE,
    PUBLISH,
    SUBSCRIBE,
    Attempt,
    Checks,
    DecidedBy,
    Outcome,
    Step,
    check_bearer,
    decided_by,
)
from realtime.clients.rules import FIRST, SECOND
from realtime.clients.session import ClientSession, Subscription
from realtime.config.options import ChannelOptions, Config
from realtime.errors import (
    BadRequest,
    Disconnect,
    DisconnectForced,
    Error,
    Expired,
    NotAvailable,
    PermissionDenied,
    TokenExpired,
)
from realtime.node.hooks import Decider, Identity
from realtime.protocol.messages import ChannelName, ClientID, UserID

Action: TypeAlias = Literal["subscribe", "publish", "presence", "history"]
ACTIONS: tuple[Action, ...] = get_args(Action)

_CHECKS: Mapping[Action, Checks] = {
    "subscribe": SUBSCRIBE,
    "publish": PUBLISH,
    "presence": PRESENCE,
    "history": HISTORY,
}

_LIMIT = "limit"
"""The check of the subscriptions that a connection has."""

_OF_NODES = ("blocked", _LIMIT, "room")
"""Checks whose outcome is known from nodes."""

DeciderOf: TypeAlias = Callable[[Action, ChannelName, ChannelOptions], Decider]
"""Returns what of the site decides about a command in a channel."""


class Judgement(NamedTuple):
    """What the verifier says of a subscription token."""

    token: SubscribeToken | None = None
    """Its claims; None if it is refused."""
    error: Error | Disconnect | None = None
    """What a client with it gets; None if it is valid, or if that is not known."""
    why: str = ""
    """Why it is refused, in English, without the token; "" if it is valid."""


class Question(Struct, frozen=True, kw_only=True):
    """Who wants to do what, and where."""

    user: UserID
    """"" for an anonymous client."""
    channel: ChannelName
    action: Action
    generation: Literal[1, 2] = 2
    """Of the protocol that the client speaks."""
    subscribed: bool = False
    """Whether the client is subscribed to the channel."""
    blocked: bool = False
    """Whether the user is blocked."""
    room: float = math.inf
    """How many more subscriptions the user may have."""
    subscriptions: tuple[int, ...] | None = None
    """How many subscriptions each connection of the client has; None if that is not known."""
    nodes_known: bool = True
    """Whether nodes have said what is so now: whether the user is blocked, and has room."""
    token: str = ""
    """A subscription token."""
    judgement: Judgement = Judgement()
    """What `judge` said of the token."""


class Explanation(NamedTuple):
    """The checks, and what comes of all of them."""

    steps: list[Step]

    @property
    def refusal(self) -> Step | None:
        """The check that refuses; None if none does."""
        return next((step for step in self.steps if step.outcome is Outcome.REFUSED), None)

    @property
    def outcome(self) -> Outcome:
        """PASSED, REFUSED, or UNKNOWN if it is left to the site.

        What nodes have not said does not make it UNKNOWN.
        """
        if self.refusal is not None:
            return Outcome.REFUSED
        left = (step for step in self.steps if step.name not in _OF_NODES)
        unknown = any(step.outcome is Outcome.UNKNOWN for step in left)
        return Outcome.UNKNOWN if unknown else Outcome.PASSED


def explain(question: Question, config: Config, decider_of: DeciderOf) -> Explanation:
    """Make every check that a command would have to pass.

    Args:
        question: who wants to do what.
        config: the options in force.
        decider_of: what of the site decides.
    """
    steps = _explain(question, config, decider_of)
    if question.nodes_known:
        return Explanation(steps)
    return Explanation([_unknown(step) if step.name in _OF_NODES else step for step in steps])


def _explain(question: Question, config: Config, decider_of: DeciderOf) -> list[Step]:
    session = ClientSession(config, 0.0, FIRST if question.generation == 1 else SECOND)
    session.connected(Identity(question.user), None)
    channel = question.channel
    if question.subscribed:
        session.subscriptions[channel] = Subscription(ChannelOptions())
    if question.action == "subscribe":
        _fill(session, min(question.subscriptions or (0,)), config)
    attempt = Attempt(channel, session, config, token=question.token, room=question.room)
    steps = _connection_steps(question, config)
    if steps[-1].outcome in (Outcome.REFUSED, Outcome.NOT_ASKED):
        checks = _CHECKS[question.action].all
        return steps + [Step(check.name, Outcome.NOT_ASKED, check.options) for check in checks]
    steps += _with_limit(_CHECKS[question.action].explain(attempt), question, config)
    if Explanation(steps).refusal is not None:
        return steps
    if question.action == "subscribe":
        steps += _decision(question, attempt, decider_of)
    elif question.action == "publish":
        steps.append(_site_step(decider_of("publish", channel, attempt.options)))
    return steps


def _unknown(step: Step) -> Step:
    """Return a step that is not known to pass."""
    return step._replace(outcome=Outcome.UNKNOWN) if step.outcome is Outcome.PASSED else step


def _fill(session: ClientSession, number: int, config: Config) -> None:
    """Give a session as many subscriptions as a connection has, up to the limit."""
    for one in range(min(number, config.client_channel_limit)):
        session.subscriptions[f"\0{one}"] = Subscription(ChannelOptions())


def _with_limit(steps: list[Step], question: Question, config: Config) -> list[Step]:
    """Say what is not known of the limit of subscriptions, which holds for each connection.

    The check was made for the connection that has the fewest. It is UNKNOWN if no connection is
    known, or if another one has as many as it may.
    """
    limit, counts = config.client_channel_limit, question.subscriptions
    if limit <= 0 or (counts and max(counts) < limit):
        return steps
    return [_unknown(step) if step.name == _LIMIT else step for step in steps]


def _connection_steps(question: Question, config: Config) -> list[Step]:
    """Return the checks that the client passes when it connects."""
    blocked, personal = Step("blocked", Outcome.PASSED), ("user_subscribe_to_personal",)
    if question.blocked:
        error = DisconnectForced()
        blocked = Step("blocked", Outcome.REFUSED, error=error)
        return [blocked, Step("personal", Outcome.NOT_ASKED, personal)]
    try:
        channel_rules.check_personal(question.user, config)
    except BadRequest as error:
        refused = error.with_traceback(None)
        return [blocked, Step("personal", Outcome.REFUSED, personal, refused)]
    has_one = config.user_subscribe_to_personal and question.user
    outcome = Outcome.PASSED if has_one else Outcome.NEEDLESS
    return [blocked, Step("personal", outcome, personal)]


def _decision(question: Question, attempt: Attempt, decider_of: DeciderOf) -> list[Step]:
    """Return the last step of a subscription: the token, the site or the options decide."""
    found = decider_of("subscribe", attempt.channel, attempt.options)
    match decided_by(attempt, lambda _channel, _options: found is not Decider.NONE):
        case DecidedBy.TOKEN:
            return [_token_step(question)]
        case DecidedBy.SITE:
            return [_site_step(found)]
    return OPEN.explain(attempt)


def _token_step(question: Question) -> Step:
    name, options = "token", ("token_hmac_secret_key",)
    if not question.token:
        return Step(name, Outcome.REFUSED, error=PermissionDenied())
    error = question.judgement.error
    if error is not None:
        return Step(name, Outcome.REFUSED, options, error)
    known = question.judgement.token is not None
    return Step(name, Outcome.PASSED if known else Outcome.UNKNOWN, options)


def _site_step(found: Decider) -> Step:
    match found:
        case Decider.NONE:
            return Step("site", Outcome.NEEDLESS)
        case Decider.MISSING:
            return Step("site missing", Outcome.REFUSED, error=NotAvailable())
        case Decider.UNMATCHED:
            return Step("unmatched", Outcome.REFUSED, error=PermissionDenied())
    return Step(found.value, Outcome.UNKNOWN)


async def judge(verifier: Verifier, question: Question, clients: Collection[ClientID]) -> Judgement:
    """Verify a subscription token as a subscribe command would.

    Args:
        verifier: of the configuration in force.
        question: has the token, and says who brings it.
        clients: the client IDs of the user's connections; a token may name one of them.
    """
    rules = FIRST if question.generation == 1 else SECOND
    now = time.time()
    try:
        token = await verifier.subscribe(question.token, now)
    except InvalidToken as error:
        return Judgement(None, PermissionDenied(), str(error))
    except ExpiredToken as error:
        return Judgement(None, TokenExpired(), str(error))
    except KeysUnavailable as error:
        return Judgement(None, None, str(error))
    client = token.client if token.client in clients else ""
    try:
        check_bearer(token, question.channel, client, question.user, rules)
    except (Error, Disconnect) as error:
        return Judgement(None, error.with_traceback(None), _mismatch(token, question))
    if token.expires_at is not None and token.expires_at <= now:
        return Judgement(None, Expired(), "expire_at has passed")
    return Judgement(token)


def _mismatch(token: SubscribeToken, question: Question) -> str:
    if not token.channel:
        return "the token names no channel"
    if token.channel != question.channel:
        return f"the token is for the channel {token.channel!r}"
    if token.user is None and not token.client:
        return "the token names no user and no client"
    if token.user is not None and token.user != question.user:
        return f"the token is for the user {token.user!r}"
    return f"the token is for the client {token.client!r}, which this user does not have now"
