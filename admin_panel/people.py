"""What the panel asks the service about one user, and beside `service` the only way to it.

Errors become those of `service`: `Unavailable` for pages, `realtime.Error` for a refusal.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeVar

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.views.decorators.debug import sensitive_variables

from realtime.auth.keys import InvalidKey
from realtime.auth.verifier import Verifier
from realtime.clients.checks import Outcome as Outcome
from realtime.clients.checks import Step as Step
from realtime.cluster.survey import SurveyResult
from realtime.config import sources
from realtime.config.options import ChannelOptions
from realtime.hooks.deciding import Deciding
from realtime.hooks.registry import registry
from realtime.node.hooks import Decider
from realtime.operators import explaining, inspecting
from realtime.operators.explaining import ACTIONS as ACTIONS
from realtime.operators.explaining import Action as Action
from realtime.operators.explaining import Explanation as Explanation
from realtime.operators.explaining import Judgement as Judgement
from realtime.operators.explaining import Question as Question
from realtime.operators.inspecting import Inspected as Inspected
from realtime.operators.questions import (
    AskMirror,
    AskRecent,
    AskUsers,
    Copy,
    MirrorAnswer,
    RecentAnswer,
    UsersAnswer,
)
from realtime.operators.questions import Refusal as Refusal
from realtime.protocol.messages import ChannelName
from realtime.server_api import operations

from . import service
from .service import ClientReport

LONGEST_NAME = 1000
"""Characters of a text by which users of the site are looked for."""

T = TypeVar("T")


class Now(NamedTuple):
    """What nodes say of a user at this moment."""

    connections: Sequence[ClientReport]
    blocked_until: float | None
    """Unix seconds; None if the user is not blocked."""
    total: int = 0
    """How many connections there are at the nodes that answered; they report the first ones."""
    missing: Sequence[str] = ()
    """Names of the nodes that did not answer."""
    room: float = math.inf
    """How many more subscriptions the user may have at the node where that is the fewest."""
    subscriptions: tuple[int, ...] | None = None
    """How many each connection has, without that to the channel; None if there is none."""

    def is_subscribed(self, channel: str) -> bool:
        """Return whether a connection is subscribed to a channel."""
        return any(channel in each.channels for each in self.connections)


def now(user: str, channel: str) -> Now:
    """Return the connections of a user, and whether the user is blocked.

    Args:
        user: the user ID; "" for anonymous clients, of whom nothing is known.
        channel: the channel of which subscriptions take no room.

    Raises:
        Unavailable: the service does not answer.
    """
    if not user:
        return Now((), None)
    surveyed = service.connections(user)
    reports = [report for answer in surveyed.answers for report in answer.connections]
    total = sum(answer.total for answer in surveyed.answers)
    room = min(
        (_room(answer.connections, channel) for answer in surveyed.answers), default=math.inf
    )
    counts = tuple(_others(report, channel) for report in reports) or None
    return Now(reports, blocked().get(user), total, surveyed.missing, room, counts)


def _room(reports: Sequence[ClientReport], channel: str) -> float:
    """Return how many more subscriptions a user may have at the node of these connections."""
    most = sources.current().user_channel_limit
    if most <= 0 or not reports:
        return math.inf
    return most - sum(_others(report, channel) for report in reports)


def _others(report: ClientReport, channel: str) -> int:
    """Return how many subscriptions a connection has besides that to the channel."""
    return report.num_channels - (channel in report.channels)


def blocked() -> dict[str, float]:
    """Return the users who are blocked, and when that ends, Unix seconds; the first end first.

    Raises:
        Unavailable: the service does not answer.
    """
    return service.read(operations.blocked)


@sensitive_variables()  # the question may hold a token, and so does what is made of it
def explain(question: Question) -> Explanation:
    """Return why a client may do something, or not. Hooks of the site are not called."""
    return explaining.explain(question, sources.current(), _decider)


def _decider(action: Action, channel: ChannelName, options: ChannelOptions) -> Decider:
    kind: Literal["subscribe", "publish"] = "publish" if action == "publish" else "subscribe"
    return Deciding(registry, sources.current()).decider(kind, channel, options)


class UserPast(NamedTuple):
    """What nodes remember of a user."""

    ended_at: float
    """When the last connection ended, Unix seconds; 0 if no node knows of one."""
    code: int
    """What the client got; 0 if it went by itself."""
    reason: str
    refusals: list[Refusal]
    """The newest first."""
    missing: list[str]
    """Names of the nodes that did not answer."""


def past(user: str) -> UserPast:
    """Return how the last connection of a user ended, and the last commands that were refused.

    Nodes remember the users of whom they wrote last, and nothing from before their start.

    Raises:
        Unavailable: the service does not answer.
    """
    surveyed = service.read(lambda member: member.survey(AskRecent(user), RecentAnswer))
    refusals = [each for answer in surveyed.answers for each in answer.refusals]
    refusals.sort(key=lambda refusal: -refusal.time)
    last = max(surveyed.answers, key=lambda answer: answer.ended_at, default=None)
    if last is None:
        return UserPast(0.0, 0, "", refusals, surveyed.missing)
    return UserPast(last.ended_at, last.code, last.reason, refusals, surveyed.missing)


class FoundUsers(NamedTuple):
    """The users who are connected, and whose ID begins with a text."""

    users: list[tuple[str, int]]
    """The first of them by ID, and how many connections each has."""
    is_cut: bool
    """Whether there are more."""
    missing: list[str]
    """Names of the nodes that did not answer."""


def find(prefix: str, limit: int) -> FoundUsers:
    """Return the users who are connected, and whose ID begins with a text.

    Raises:
        Unavailable: the service does not answer.
    """
    question = AskUsers(prefix, limit + 1)
    surveyed = service.read(lambda member: member.survey(question, UsersAnswer))
    numbers: Counter[str] = Counter()
    for answer in surveyed.answers:
        numbers.update(answer.users)
    users = sorted(numbers.items())
    return FoundUsers(users[:limit], len(users) > limit, surveyed.missing)


class Person(NamedTuple):
    """A user of the site."""

    user: str
    """The user ID."""
    name: str
    email: str


def find_people(text: str, limit: int) -> tuple[list[Person], bool]:
    """Return users of the site whose name or e-mail address begins with a text.

    Returns:
        The first of them, and whether there are more.
    """
    # no name is like that, and not every database takes it
    if "\0" in text or len(text) > LONGEST_NAME:
        return [], False
    model = get_user_model()
    fields = {field.name for field in model._meta.get_fields()}
    names = [model.USERNAME_FIELD, model.get_email_field_name(), "first_name", "last_name"]
    wanted = Q()
    for name in dict.fromkeys(names):
        if name in fields:
            wanted |= Q(**{f"{name}__istartswith": text})
    rows = list(model._default_manager.filter(wanted).order_by("pk")[: limit + 1])
    people = [
        Person(str(row.pk), row.get_username(), str(getattr(row, names[1], "") or ""))
        for row in rows
    ]
    return people[:limit], len(people) > limit


@sensitive_variables()
def inspect(token: str) -> Inspected:
    """Take a token apart and verify it. It is neither kept nor logged."""
    try:
        verifier = Verifier(sources.current())
    except InvalidKey as error:
        return Inspected(is_subscription=False, why=str(error))
    try:
        return _run(inspecting.inspect(verifier, token, time.time()))
    finally:
        verifier.close()


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run work on a token. What it raises has no frames: `sensitive_variables` misses these."""

    async def run() -> T:
        return await work

    try:
        return async_to_sync(run)()
    except Exception as error:
        raise error.with_traceback(None) from None


@sensitive_variables()
def judge(question: Question, reports: Sequence[ClientReport]) -> Judgement:
    """Verify the subscription token of a question. It is neither kept nor logged.

    Args:
        question: has the token.
        reports: the connections of the user; a token may be for one of them alone.
    """
    verifier = Verifier(sources.current())  # `inspect` has had one, too
    try:
        clients = {report.client for report in reports}
        return _run(explaining.judge(verifier, question, clients))
    finally:
        verifier.close()


# frames


class CopiedFrame(NamedTuple):
    """A copy of a frame, or that a connection came or went."""

    node: str
    """Name of the node."""
    copy: Copy


class Frames(NamedTuple):
    """What nodes copied of a user's frames."""

    frames: list[CopiedFrame]
    """In the order of time, as the clocks of the nodes say."""
    taken: dict[str, int]
    """Node ID → the number of the last copy, for the next question."""
    left_out: int
    """How much was not copied since the beginning, because more came than nodes keep."""
    missing: list[str]
    """Names of the nodes that did not answer."""
    refused: list[str]
    """Names of the nodes that follow as many users as they may."""


def frames(mirror: str, user: str, *, masked: bool, taken: Mapping[str, int]) -> Frames:
    """Return the frames of a user's connections that came since the last question.

    The first question begins to copy them; without one for ten seconds nodes end it.

    Args:
        mirror: names what is followed, and is new for each.
        user: the user ID.
        masked: leave payloads out.
        taken: what the last question returned.

    Raises:
        Unavailable: the service does not answer.
    """
    question = AskMirror(mirror=mirror, user=user, masked=masked, taken=dict(taken))
    surveyed = _mirror(question)
    new = [
        (answer, copy)
        for answer in surveyed.answers
        for copy in answer.copies
        if copy.number > taken.get(answer.node, 0)
    ]
    numbers = dict(taken)
    for answer, copy in new:
        numbers[answer.node] = max(numbers.get(answer.node, 0), copy.number)
    return Frames(
        [
            CopiedFrame(answer.name, copy)
            for answer, copy in sorted(new, key=lambda item: item[1].time)
        ],
        numbers,
        sum(answer.left_out for answer in surveyed.answers),
        surveyed.missing,
        [answer.name for answer in surveyed.answers if answer.refused],
    )


def end_frames(mirror: str) -> None:
    """Copy no more of a user's frames. Nodes that do not answer end it by themselves."""
    with suppress(service.Unavailable):
        _mirror(AskMirror(mirror=mirror, ends=True))


def _mirror(question: AskMirror) -> SurveyResult[MirrorAnswer]:
    return service.read(lambda member: member.survey(question, MirrorAnswer))
