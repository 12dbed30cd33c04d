"""What of a site decides about a command in a channel: a function, an endpoint, or the options.

A hook closes its namespace: where the pattern of a hook can match a channel of a namespace, a
channel of that namespace that no pattern of the same kind matches is refused. Channels without a
namespace count as those of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from realtime import channel_rules
from realtime.config.options import ChannelOptions, Config
from realtime.hooks.patterns import Pattern
from realtime.hooks.registry import Registry
from realtime.node.hooks import Decider
from realtime.protocol.messages import ChannelName

Kind: TypeAlias = Literal["subscribe", "publish", "map_put"]


class Deciding:
    """What decides in each channel, for one set of hooks and one configuration."""

    def __init__(self, registry: Registry, config: Config) -> None:
        self._registry = registry
        self._config = config

    def decider(self, kind: Kind, channel: ChannelName, options: ChannelOptions) -> Decider:
        """Return what decides about a command in a channel."""
        if self._registry.find(getattr(self._registry, kind), channel) is not None:
            return Decider.FUNCTION
        if options.proxy_subscribe if kind == "subscribe" else options.proxy_publish:
            proxy = self._config.proxies["subscribe" if kind == "subscribe" else "publish"]
            return Decider.ENDPOINT if proxy.endpoint else Decider.MISSING
        return Decider.UNMATCHED if self.is_closed(kind, channel) else Decider.NONE

    def is_closed(self, kind: Kind, channel: ChannelName) -> bool:
        """Return whether hooks close the namespace of a channel."""
        closed = self._closed_to_subscribe
        if kind != "subscribe":
            closed = self._closed_to_publish if kind == "publish" else self._closed_to_put
        return channel.startswith(closed.beginnings) or (
            closed.top_level and not channel_rules.namespace_of(channel, self._config)
        )

    @cached_property
    def _closed_to_subscribe(self) -> _Closed:
        # about private channels no subscribe hook is asked; the pattern of a feed is exact
        prefix, guarded = self._config.channel_private_prefix, self._registry.guarded
        return self._closed_by(
            [
                pattern
                for pattern, _ in self._registry.subscribe
                if pattern.text not in guarded and not (prefix and pattern.text.startswith(prefix))
            ]
        )

    @cached_property
    def _closed_to_publish(self) -> _Closed:
        return self._closed_by([pattern for pattern, _ in self._registry.publish])

    @cached_property
    def _closed_to_put(self) -> _Closed:
        # publish hooks close, too: they are not asked about maps
        entries = (*self._registry.map_put, *self._registry.publish)
        return self._closed_by([pattern for pattern, _ in entries])

    def _closed_by(self, patterns: Sequence[Pattern]) -> _Closed:
        config = self._config
        beginnings = [
            beginning
            for name in config.namespaces
            if any(may_match(each, name, config) for each in patterns)
            for beginning in _beginnings(name, config)
        ]
        return _Closed(tuple(beginnings), any(may_match(each, "", config) for each in patterns))


class _Closed(NamedTuple):
    """The namespaces that patterns close."""

    beginnings: tuple[str, ...]
    """Of the names of their channels."""
    top_level: bool
    """Whether they are closed that have no namespace."""


def may_match(pattern: Pattern, namespace: str, config: Config) -> bool:
    """Return whether a pattern may match a channel of a namespace; "" for those without one."""
    if not namespace:
        sample = pattern.fill(dict.fromkeys(pattern.names, "x"))
        return not channel_rules.namespace_of(sample, config)
    return any(map(pattern.may_begin, _beginnings(namespace, config)))


def _beginnings(namespace: str, config: Config) -> list[str]:
    """Return with what the names of a namespace's channels begin; empty if it has none."""
    prefixes = dict.fromkeys(("", config.channel_private_prefix))
    boundary = config.channel_namespace_boundary
    return [f"{prefix}{namespace}{boundary}" for prefix in prefixes] if boundary else []
