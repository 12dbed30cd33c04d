"""Checks that every hook the options call for exists, and that every hook can be called."""

from __future__ import annotations

import re
from importlib.metadata import version

from django.core import checks
from django.core.checks import CheckMessage

from realtime import channel_rules
from realtime.config.options import Config
from realtime.config.sources import Report
from realtime.errors import Error
from realtime.hooks.registry import registry
from realtime.hooks.runner import threads_can_be_chosen
from realtime.pages import page_config


def check_proxies(report: Report) -> list[CheckMessage]:
    """W010: `proxy_subscribe` or `proxy_publish` is on without an endpoint and without a hook."""
    config = report.config
    messages: list[CheckMessage] = []
    for kind, endpoint, entries in (
        ("subscribe", config.proxy_subscribe_endpoint, registry.subscribe),
        ("publish", config.proxy_publish_endpoint, registry.publish),
    ):
        if endpoint:
            continue
        messages.extend(
            checks.Warning(
                f"proxy_{kind} is on in {place}, but there is neither an endpoint nor a hook:"
                " clients get error 108.",
                hint=f"Set proxy_{kind}_endpoint, or register a function with @hooks.{kind} in"
                " the module realtime.py of an app.",
                id="realtime.W010",
            )
            for place, name, options in (
                ("the top level", "", config.channel),
                *((f"namespace {n!r}", n, options) for n, options in config.namespaces.items()),
            )
            if getattr(options, f"proxy_{kind}")
            and not any(may_match(pattern.text, name, config) for pattern, _ in entries)
        )
    return messages


def check_private_channels(report: Report) -> list[CheckMessage]:
    """W021: a hook for private channels is never called."""
    prefix = report.config.channel_private_prefix
    if not prefix or page_config.find_view("subscribe") is not None:
        return []
    return [
        checks.Warning(
            f"The hook for private channels {pattern.text!r} is never called: realtime.urls is not"
            " included.",
            hint='Include it: path("centrifuge/", include("realtime.urls")).',
            id="realtime.W021",
        )
        for pattern, _ in registry.subscribe
        if pattern.text.startswith(prefix)
    ]


def check_patterns(report: Report) -> list[CheckMessage]:
    """W022: a hook's pattern names a namespace that is not configured."""
    config = report.config
    texts = dict.fromkeys(pattern.text for pattern, _ in (*registry.subscribe, *registry.publish))
    return [
        checks.Warning(
            f"The pattern {text!r} of a hook matches no channel: its namespace is not configured.",
            hint="Add the namespace to the option namespaces, or correct the pattern.",
            id="realtime.W022",
        )
        for text in texts
        if not any(may_match(text, name, config) for name in ("", *config.namespaces))
    ]


def check_gaps(report: Report) -> list[CheckMessage]:
    """W053: a hook's pattern ends with a name in braces, and clients may use channels with one
    colon more, which it does not match.
    """
    config = report.config
    messages: list[CheckMessage] = []
    for kind, endpoint, entries, may in (
        ("subscribe", config.proxy_subscribe_endpoint, registry.subscribe, "subscribe to"),
        ("publish", config.proxy_publish_endpoint, registry.publish, "publish into"),
    ):
        for pattern, _ in entries:
            if not pattern.text.endswith("}"):
                continue
            beyond = pattern.fill(dict.fromkeys(pattern.names, "x"), "x") + ":x"
            if registry.find(entries, beyond) is None and _is_open(kind, beyond, config, endpoint):
                messages.append(
                    checks.Warning(
                        f"The {kind} hook for {pattern.text!r} is not asked about {beyond!r}, and"
                        f" the options let clients {may} it: a name in braces matches no colon.",
                        hint="End the pattern with * instead, or forbid such names by the option"
                        " channel_regex.",
                        id="realtime.W053",
                    )
                )
    return messages


def _is_open(kind: str, channel: str, config: Config, endpoint: str) -> bool:
    """Return whether the options alone let a client subscribe to a channel, or publish into it."""
    try:
        options = channel_rules.check_channel(channel, config)
        channel_rules.check_pattern(channel, options, config)
    except Error:
        return False
    if channel_rules.is_private(channel, config) or (
        endpoint and getattr(options, f"proxy_{kind}")
    ):
        return False
    if kind == "subscribe":
        return options.allow_subscribe_for_client
    return options.allow_publish_for_client or options.allow_publish_for_subscriber


def check_threads(report: Report) -> list[CheckMessage]:
    """W023: with this asgiref, coroutine hooks share one thread for the database."""
    if not registry or threads_can_be_chosen():
        return []
    return [
        checks.Warning(
            f"asgiref {version('asgiref')} does not let hooks choose their threads: coroutine"
            " hooks that use the database or sync_to_async wait for each other.",
            hint="Install an older asgiref, or a newer version of django-realtime-messaging.",
            id="realtime.W023",
        )
    ]


def may_match(pattern: str, namespace: str, config: Config) -> bool:
    """Return whether a pattern may match a channel of a namespace, judged by its beginning."""
    literal = re.split(r"[*{]", pattern, maxsplit=1)[0]
    beginning = literal.removeprefix(config.channel_private_prefix)
    boundary = config.channel_namespace_boundary
    if not boundary:
        return not namespace
    if boundary in beginning:
        return beginning.partition(boundary)[0] == namespace
    if not namespace:
        return True
    return literal != pattern and f"{namespace}{boundary}".startswith(beginning)
