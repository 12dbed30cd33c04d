"""Why a user may do something in a channel, or not: every check, and the option that decides.

The checks are those of the service, made for a client that is described. A token that an operator
pastes comes in a POST, is verified, and is gone with the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast

from django.http import HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables

from realtime.channel_rules import namespace_of
from realtime.config import sources
from realtime.config.names import given_items, options_in
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from realtime.errors import Error

from .. import people, service
from ..json_text import JSONText, json_text
from ..panel import PageRequest
from ..people import (
    ACTIONS,
    Action,
    Explanation,
    Inspected,
    Now,
    Outcome,
    Question,
    Step,
)
from ..why_words import ACTIONS as ACTION_WORDS
from ..why_words import CHECKS, room_in_words
from .namespaces import ORIGINS, Value, value_of

LONGEST = 1000
"""Characters of a user ID or of the name of a channel that are looked at."""

BOTH_COUNT = ("history_size", "history_lifetime")
"""Options of which each can be the reason."""


class OutcomeWords(NamedTuple):
    """An outcome as a sign, for a check, and for all checks of an action."""

    sign: str
    check: str | Promise
    verdict: str | Promise = ""


WORDS: Mapping[Outcome, OutcomeWords] = {
    Outcome.PASSED: OutcomeWords("✓", gettext_lazy("passes"), gettext_lazy("allowed")),
    Outcome.REFUSED: OutcomeWords("✕", gettext_lazy("refuses"), gettext_lazy("refused")),
    Outcome.NOT_ASKED: OutcomeWords("○", gettext_lazy("not asked")),
    Outcome.NEEDLESS: OutcomeWords("·", gettext_lazy("does not apply")),
    Outcome.UNKNOWN: OutcomeWords(
        "?", gettext_lazy("not known here"), gettext_lazy("the site decides")
    ),
}


class Fact(NamedTuple):
    """An option that decides."""

    name: str
    value: Value
    place: str | None
    """Its namespace, "" for the top level; None for an option of the whole service."""

    @property
    def anchor(self) -> str:
        """Its place on the page of options."""
        return "channel-options" if self.name == "namespaces" else f"option-{self.name}"


class CheckLine(NamedTuple):
    """A check on the page."""

    text: str | Promise
    outcome: Outcome
    code: int | None = None
    message: str = ""
    """What the client gets, for a check that refuses."""
    why: str = ""
    """More about it, in English."""
    facts: Sequence[Fact] = ()

    @property
    def words(self) -> OutcomeWords:
        return WORDS[self.outcome]


class ActionVerdict(NamedTuple):
    """What comes of all checks of one action."""

    action: Action
    name: str | Promise
    outcome: Outcome
    is_chosen: bool

    @property
    def words(self) -> OutcomeWords:
        return WORDS[self.outcome]


@sensitive_variables()  # of what it calls, too: a token goes through many hands
def show(request: PageRequest) -> HttpResponse:
    """Show the checks for the user, channel and action in the query."""
    token = _token(request)
    query = request.http.GET
    user, channel = (query.get(name, "")[:LONGEST] for name in ("user", "channel"))
    action = cast(Action, query.get("action", "")) if query.get("action") in ACTIONS else None
    context: dict[str, Any] = {
        "user_id": user,
        "channel": channel,
        "actions": ACTION_WORDS,
        "generation": _generation(query.get("generation")),
        "subscribed": query.get("subscribed", ""),
    }
    if not channel:
        return request.render("why.html", action=action, **context)
    try:
        now = people.now(user, channel)
        unavailable = None
    except service.Unavailable as error:  # the options are known without the service
        now, unavailable = Now((), None), error
    inspected = people.inspect(token) if token else None
    is_for_channel = inspected is not None and inspected.is_subscription
    asked = Question(
        user=user,
        channel=channel,
        action=action or "subscribe",
        generation=context["generation"],
        subscribed=_is_subscribed(context["subscribed"], now, channel),
        blocked=now.blocked_until is not None,
        room=now.room,
        subscriptions=now.subscriptions,
        nodes_known=unavailable is None,
        token=token if is_for_channel else "",
    )
    if asked.token:
        asked = _replaced(asked, judgement=people.judge(asked, now.connections))
    explanations = {each: people.explain(_for(asked, each)) for each in ACTIONS}
    chosen = action or _first_refused(explanations)
    explanation = explanations[chosen]
    return request.render(
        "why.html",
        status=200 if unavailable is None else 503,
        unavailable=unavailable,
        action=chosen,
        is_subscribed=asked.subscribed,
        now=now,
        outcome=explanation.outcome,
        verdicts=[
            ActionVerdict(each, ACTION_WORDS[each], found.outcome, each == chosen)
            for each, found in explanations.items()
        ],
        lines=[_line(step, channel, asked) for step in explanation.steps],
        judgement=asked.judgement if asked.token else None,
        inspected=inspected,
        claims=None if inspected is None else _shown(inspected),
        expires=None if inspected is None else _moment(inspected.expires_at),
        **context,
    )


def _shown(inspected: Inspected) -> JSONText | None:
    return None if inspected.claims is None else json_text(inspected.claims)


def _moment(seconds: float | None) -> datetime | None:
    """Return a claim as a moment; None if there is none, or none that a calendar has."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _token(request: PageRequest) -> str:
    """Return the token that the operator pasted; "" for none. It must not get into reports."""
    if request.http.method != "POST":
        return ""
    request.http.sensitive_post_parameters = ["token"]  # type: ignore[attr-defined]
    return request.http.POST.get("token", "").strip()


def _generation(text: str | None) -> Literal[1, 2]:
    return 1 if text == "1" else 2


def _is_subscribed(answer: str, now: Now, channel: str) -> bool:
    """Return whether the client is taken for a subscriber: as the operator says, or as it is."""
    return answer == "yes" or (answer != "no" and now.is_subscribed(channel))


def _for(asked: Question, action: Action) -> Question:
    """Return the question about an action. To subscribe, a client must not be subscribed yet."""
    return _replaced(asked, action=action, subscribed=asked.subscribed and action != "subscribe")


def _replaced(asked: Question, **changes: Any) -> Question:
    values = {name: getattr(asked, name) for name in asked.__struct_fields__}
    return Question(**(values | changes))


def _first_refused(explanations: Mapping[Action, Explanation]) -> Action:
    """Return the action that an operator means who asks why: the first one that is refused."""
    refused = (each for each, found in explanations.items() if found.refusal is not None)
    return next(refused, "subscribe")


def _line(step: Step, channel: str, asked: Question) -> CheckLine:
    words, why = CHECKS[step.name], ""
    if step.name == "token":
        why = asked.judgement.why
    elif step.name == "limit":
        why = room_in_words(asked.subscriptions, sources.current().client_channel_limit)
    if step.outcome is not Outcome.REFUSED:
        return CheckLine(
            words.passes, step.outcome, why=why if step.outcome is Outcome.UNKNOWN else ""
        )
    error = step.error
    assert error is not None
    message = error.message if isinstance(error, Error) else error.reason
    return CheckLine(words.refuses, step.outcome, error.code, message, why, _facts(step, channel))


# the options that decide


def _facts(step: Step, channel: str) -> list[Fact]:
    """Return the options that decide a check, with their values and where these come from."""
    config, found = sources.current(), sources.gather()
    namespace = namespace_of(channel, config)
    place = namespace if namespace in config.namespaces else ""
    given = _given(found.options, place)
    names = [name for name in step.options if name in given and name not in BOTH_COUNT]
    facts = []
    for name in names or step.options:
        if name == "namespaces":
            text = ", ".join(config.namespaces) or _("none")
            origin = ORIGINS.get(found.origins.get(name, ""), "")
            facts.append(Fact(name, Value(text, not origin, bool(config.namespaces), origin), None))
        elif (option := CHANNEL_OPTION_FIELDS.get(name)) is not None:
            options = config.namespaces.get(place, config.channel)
            source = found.origins.get("namespaces" if place else name, "")
            origin = ORIGINS.get(source, "") if name in given else ""
            facts.append(Fact(name, value_of(option, getattr(options, name), origin), place))
        else:
            option = CONFIG_FIELDS[name]
            origin = ORIGINS.get(found.origins.get(name, ""), "")
            facts.append(Fact(name, value_of(option, config.value_of(name), origin), None))
    return facts


def _given(options: Mapping[str, object], place: str) -> set[str]:
    """Return the names of the options that are given: in a namespace, or at the top level."""
    if not place:
        return set(options)
    for item in given_items(options):
        if item.get("name") == place:
            return {known for known, _name, _value in options_in(item)}
    return set()
