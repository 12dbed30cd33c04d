"""Checks of hooks and typed channels: that those which the options call for exist, and that each
can be called.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version

from realtime.checks.table import Found, check
from realtime.config.options import Config
from realtime.config.sources import Report
from realtime.hooks.deciding import may_match
from realtime.hooks.patterns import Pattern
from realtime.hooks.registry import registry
from realtime.hooks.runner import threads_can_be_chosen
from realtime.pages import page_config


@check("realtime.W010")
def check_proxies(report: Report) -> Found:
    """W010: `proxy_subscribe` or `proxy_publish` is on without an endpoint and without a hook."""
    config = report.config
    for kind in ("subscribe", "publish"):
        if config.proxies[kind].endpoint:
            continue
        for name, options in (("", config.channel), *config.namespaces.items()):
            is_on = getattr(options, f"proxy_{kind}")
            hook = "map_put" if kind == "publish" and options.map else kind
            entries = getattr(registry, hook)
            if is_on and not any(may_match(pattern, name, config) for pattern, _ in entries):
                place = f"namespace {name!r}" if name else "the top level"
                yield (
                    f"proxy_{kind} is on in {place}, but there is neither an endpoint nor a hook:"
                    " clients get error 108.",
                    f"Set proxy_{kind}_endpoint, or register a function with @hooks.{hook} in the"
                    " module realtime.py of an app.",
                )


@check("realtime.W021", 'Include it: path("centrifuge/", include("realtime.urls")).')
def check_private_channels(report: Report) -> Found:
    """W021: a hook for private channels is never called."""
    prefix = report.config.channel_private_prefix
    if not prefix or page_config.find_view("subscribe") is not None:
        return
    for pattern, _ in registry.subscribe:
        if pattern.text.startswith(prefix):
            yield (
                f"The hook for private channels {pattern.text!r} is never called: realtime.urls is"
                " not included."
            )


_ADD_NAMESPACE = "Add the namespace to the option namespaces, or correct the pattern."


@check("realtime.W022", _ADD_NAMESPACE)
def check_patterns(report: Report) -> Found:
    """W022: a hook's pattern names a namespace that is not configured."""
    texts = (
        pattern.text for pattern, _ in (*registry.subscribe, *registry.publish, *registry.map_put)
    )
    for text in _matching_nothing(dict.fromkeys(texts), report.config):
        yield f"The pattern {text!r} of a hook matches no channel: its namespace is not configured."


@check("realtime.W056", _ADD_NAMESPACE)
def check_declared_patterns(report: Report) -> Found:
    """W056: the pattern of a typed channel names a namespace that is not configured."""
    types = report.config.types
    for text in _matching_nothing(types.patterns() if types else (), report.config):
        yield f"The typed channel {text!r} matches no channel: its namespace is not configured."


def _matching_nothing(patterns: Iterable[str], config: Config) -> Iterable[str]:
    namespaces = ("", *config.namespaces)
    for text in patterns:
        pattern = Pattern(text)
        if not any(may_match(pattern, name, config) for name in namespaces):
            yield text


@check(
    "realtime.W023",
    "Install an older asgiref, or a newer version of django-realtime-messaging.",
)
def check_threads(report: Report) -> Found:
    """W023: with this asgiref, coroutine hooks share one thread for the database."""
    if registry and not threads_can_be_chosen():
        yield (
            f"asgiref {version('asgiref')} does not let hooks choose their threads: coroutine"
            " hooks that use the database or sync_to_async wait for each other."
        )


@check("realtime.E052", "Correct the call of realtime.channel.")
def check_declarations(report: Report) -> Found:
    """E052: two typed channels are declared for the same channels, or one has a type that no
    library knows.
    """
    if report.config.types:
        yield from report.config.types.problems()
