"""System checks of live models: that `may_view` decides, and is not gone around."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage

from realtime import channel_rules
from realtime.config import sources
from realtime.config.options import ChannelOptions, Config
from realtime.errors import Error
from realtime.hooks.registry import registry
from realtime.live.rows.channels import ChannelPattern
from realtime.live.rows.feeds import LiveFeed, feeds


def check_may_view(**_: Any) -> list[CheckMessage]:
    """E051: a feed of a live model has no `may_view`, or one that cannot be asked: no client may
    subscribe to its channels.
    """
    return [
        checks.Error(
            f"{feed.name}: {problem}",
            hint="Write def may_view(request, ...) into the feed, without self, with a parameter"
            " for each name in its channels.",
            id="realtime.E051",
        )
        for feed in feeds.all()
        for problem in _problems(feed)
    ]


def _problems(feed: LiveFeed) -> Iterator[str]:
    may_view = feed.kind.may_view
    if may_view is None:
        yield "has no may_view, so no client may subscribe to its channels."
        return
    for each in feed.patterns:
        try:
            inspect.signature(may_view).bind(None, **dict.fromkeys(each.fields))
        except TypeError as error:
            yield f"may_view cannot be asked about {each.text!r}: {error}."
    for each, options, config in _channels(feed):
        if channel_rules.is_user_limited(each.sample, options, config):
            yield f"may_view is never asked about {each.text!r}: the name lists its users."


def check_ways_around(**_: Any) -> list[CheckMessage]:
    """W055: clients may publish into a channel of a live model, or read its history, without
    being asked by `may_view`: what they publish is shown as HTML.
    """
    return [
        checks.Warning(
            f"{feed.name}: clients may {what} {each.text!r}, whatever may_view says.",
            hint=f"Turn {option} off for these channels.",
            id="realtime.W055",
        )
        for feed in feeds.all()
        for each, options, config in _channels(feed)
        for option, what in _ways(each, options, config)
    ]


_PUBLISHING = ("allow_publish_for_client", "allow_publish_for_subscriber")


def _ways(
    pattern: ChannelPattern, options: ChannelOptions, config: Config
) -> Iterator[tuple[str, str]]:
    if config.client_insecure:
        yield "client_insecure", "do everything in"
    elif registry.find(registry.publish, pattern.sample) is None:
        yield from ((each, "publish HTML into") for each in _PUBLISHING if getattr(options, each))
    if options.keeps_history and options.allow_history_for_client:
        yield "allow_history_for_client", "read the history of"


def _channels(feed: LiveFeed) -> Iterator[tuple[ChannelPattern, ChannelOptions, Config]]:
    """Yield the patterns of a feed whose channels have options; for the others see W022."""
    report = sources.examine()
    for each in feed.patterns if not report.problems else ():
        with suppress(Error):
            options = channel_rules.options_of(each.sample, report.config)
            yield each, options, report.config


def check_maps(**_: Any) -> list[CheckMessage]:
    """E058: rows of a live model are entries of a map that forgets them, or shows no data."""
    return [
        checks.Error(
            f"{feed.name}: {each.text!r} is a map: {problem}.", hint=hint, id="realtime.E058"
        )
        for feed in feeds.all()
        for each, options, _ in _channels(feed)
        if options.map
        for problem, hint in _map_problems(feed, each, options)
    ]


def _map_problems(
    feed: LiveFeed, pattern: ChannelPattern, options: ChannelOptions
) -> Iterator[tuple[str, str]]:
    others = (other for other in feeds.all() if other is not feed)
    if any(pattern.sample == each.sample for other in others for each in other.patterns):
        yield "several feeds put rows into it", "Give each feed a channel of its own."
    if options.map != "persistent":
        yield "its rows expire", 'Set the option map of the namespace to "persistent".'
    if feed.kind.only_ids:
        yield "its rows have no data", "Give the feed fields, a serializer or a fragment."


CHECKS = (check_may_view, check_ways_around, check_maps)
