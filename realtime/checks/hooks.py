"""Checks that every hook the options call for exists, and that every hook can be called."""

from __future__ import annotations

from importlib.metadata import version

from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.sources import Report
from realtime.hooks.deciding import may_match
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
            and not any(may_match(pattern, name, config) for pattern, _ in entries)
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
    patterns = {each.text: each for each, _ in (*registry.subscribe, *registry.publish)}
    return [
        checks.Warning(
            f"The pattern {text!r} of a hook matches no channel: its namespace is not configured.",
            hint="Add the namespace to the option namespaces, or correct the pattern.",
            id="realtime.W022",
        )
        for text, pattern in patterns.items()
        if not any(may_match(pattern, name, config) for name in ("", *config.namespaces))
    ]


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
