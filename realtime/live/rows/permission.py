"""Who may see rows: `may_view` of feeds decides about subscribing, and is asked again.

A channel may be one of several feeds, and then all of them must allow it. Only a true answer
allows: a function that forgets its answer allows nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async

from realtime.channel_rules import name
from realtime.hooks.answers import Allowed
from realtime.hooks.registry import registry
from realtime.hooks.requests import SubscribeRequest
from realtime.hooks.site_values import user_id
from realtime.live.rows import filling
from realtime.live.rows.channels import ChannelPattern
from realtime.live.rows.feeds import LiveFeed, feeds
from realtime.serving import serving

SPREAD = 0.25
"""The part of the time of an answer that is left to chance: clients that came back together, as
after a restart, are not asked about together for ever."""

Names = Mapping[str, str]
"""Name in a pattern → its text in the channel."""

Matches = Sequence[tuple[LiveFeed, ChannelPattern, Names]]


def guard(feed: LiveFeed) -> None:
    """Have the feed decide about its channels.

    Raises:
        ValueError: the site has a hook for the same pattern.
    """
    for each in feed.patterns:
        registry.add_guard(each.text, decide)


def decide(request: SubscribeRequest) -> Any:
    """Return whether every feed of a channel allows a client to subscribe: the hook of channels."""
    matches = [
        (feed, each, names)
        for feed in feeds.all()
        for each in feed.patterns
        if (names := each.pattern.match(request.channel)) is not None
    ]
    if not matches or not all(each.may_be_of_row(names) for _, each, names in matches):
        return False
    allowed = Allowed(ttl=_ttl(min(feed.kind.recheck for feed, _, _ in matches)))
    if any(iscoroutinefunction(feed.kind.may_view) for feed, _, _ in matches):
        return _adecide(request, matches, allowed)
    if not all(_allows(feed, request, names) for feed, _, names in matches):
        return False
    _fill(request, matches)
    return allowed


def _fill(request: SubscribeRequest, matches: Matches) -> None:
    for feed, pattern, _ in matches:
        filling.fill(request.channel, feed, pattern)


def _allows(feed: LiveFeed, request: SubscribeRequest, names: Names) -> bool:
    may_view = feed.kind.may_view
    # in this thread: a queryset reads the database only now
    return may_view is not None and bool(may_view(request, **names))


async def _adecide(request: SubscribeRequest, matches: Matches, allowed: Allowed) -> Allowed | bool:
    for feed, _, names in matches:
        may_view = feed.kind.may_view
        if may_view is not None and iscoroutinefunction(may_view):
            is_allowed = bool(await may_view(request, **names))
        else:
            is_allowed = await sync_to_async(_allows)(feed, request, names)
        if not is_allowed:
            return False
    await sync_to_async(_fill)(request, matches)
    return allowed


def _ttl(recheck: float) -> float:
    return recheck * (1 - SPREAD * random.random())


def invalidate(user: Any, channel: str = "") -> None:
    """Have `may_view`, and subscribe hooks, asked again at once about a user's subscriptions.

    Those that the user has lost end; others go on, and miss nothing. Call it after the commit of
    what takes the right away.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID; "" for anonymous
            clients.
        channel: the name of the channel; "" means all channels.

    Raises:
        TypeError: `user` is neither a user nor an ID.
        EngineUnavailable: The engine is away; this process has asked about its own clients.
    """
    who, where = user_id(user), name(channel)
    serving.call(lambda member: member.ask_again(who, where), async_name="live.ainvalidate")


async def ainvalidate(user: Any, channel: str = "") -> None:
    """Have `may_view` asked again at once. Async version of `invalidate`."""
    who, where = user_id(user), name(channel)
    await serving.acall(lambda member: member.ask_again(who, where))
