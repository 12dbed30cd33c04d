"""Who may read and stop an answer: who asked for it; reading, also who may read its channel."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, fields
from inspect import isawaitable
from typing import Any

from realtime import channel_rules
from realtime.answers import rows
from realtime.answers.models import Answer
from realtime.config import sources
from realtime.errors import PermissionDenied
from realtime.hooks import answers
from realtime.hooks.answers import Allowed
from realtime.hooks.deciding import Deciding
from realtime.hooks.registry import registry
from realtime.hooks.requests import Request, SubscribeRequest
from realtime.hooks.runner import call
from realtime.node.hooks import Decider

RECHECK = 60.0
"""Seconds after which the rules of the channel are asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest(Request):
    """A client, or a visitor, wants to stop an answer."""

    answer: Answer
    params: Mapping[str, str] = field(default_factory=dict)
    """Name in the pattern → its text in the channel of the answer."""


def decide(request: SubscribeRequest) -> Any:
    """Decide about a subscription to the channel of an answer, as a subscribe hook does."""
    row = rows.fetch(request.params["id"])
    return False if row is None else _may_read(row, request)


def check_read(row: Answer, request: Request) -> None:
    """Check that a client or visitor may read an answer.

    Raises:
        PermissionDenied: the rules of the channel refuse it.
        Error, Disconnect: the subscribe hook refuses it in this way.
        InternalError: the hook failed.
    """
    call(lambda asked: _may_read(row, asked), request, answers.permission)


def check_stop(row: Answer, request: Request) -> None:
    """Check that a client or visitor may stop an answer.

    Raises:
        PermissionDenied: another user asked for it, or the site's `answer_stop` refuses.
        Error, Disconnect: the hook refuses it in this way.
        InternalError: the hook failed.
    """
    found = registry.find(registry.answer_stop, row.channel)
    if found is None:
        if not row.user or row.user != request.user:
            raise PermissionDenied
        return
    function, params = found
    asked = StopRequest(**_caller(request), answer=row, params=params)
    call(function, asked, lambda answer: answers.permission(bool(answer)))


def _caller(request: Request) -> dict[str, Any]:
    return {each.name: getattr(request, each.name) for each in fields(Request) if each.init}


def _may_read(row: Answer, request: Request) -> Any:
    """Return the answer of a subscribe hook, by the rules of the row's own channel."""
    if row.user and row.user == request.user:
        return True
    config, channel = sources.current(), row.channel
    options = channel_rules.check_channel(channel, config)
    channel_rules.check_subscribe(channel, options, request.user, config)
    if channel_rules.is_private(channel, config):
        found = registry.find_private(channel, config.channel_private_prefix)
    else:
        decider = Deciding(registry, config).decider("subscribe", channel, options)
        if decider is Decider.NONE:
            channel_rules.check_unasked(channel, options, config)
            return Allowed(ttl=RECHECK)
        found = registry.find(registry.subscribe, channel) if decider is Decider.FUNCTION else None
    if found is None:
        return False
    function, params = found
    answer = function(SubscribeRequest(**_caller(request), channel=channel, params=params))
    return _later(answer) if isawaitable(answer) else _for_a_while(answer)


async def _later(answer: Awaitable[Any]) -> Any:
    return _for_a_while(await answer)


def _for_a_while(answer: Any) -> Any:
    if answer is False or isinstance(answer, Allowed):
        return answer
    return Allowed(info=None if answer is True else answer, ttl=RECHECK)
