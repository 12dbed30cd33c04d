"""What the site registered: functions by kind, channel pattern and method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from realtime.hooks.patterns import Pattern

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Registry:
    """The functions of a site. The last one registered for the same place wins."""

    def __init__(self) -> None:
        self.single: dict[str, Function] = {}
        """Kind → function, for kinds that have one: connect, refresh, info, message."""
        self.subscribe: list[tuple[Pattern, Function]] = []
        self.publish: list[tuple[Pattern, Function]] = []
        self.methods: dict[str, Function] = {}
        """RPC method → function."""

    def __bool__(self) -> bool:
        return bool(self.single or self.subscribe or self.publish or self.methods)

    def find(
        self, entries: list[tuple[Pattern, Function]], channel: str
    ) -> tuple[Function, dict[str, str]] | None:
        """The function for a channel: of the first pattern that matches, with its params."""
        for pattern, function in entries:
            params = pattern.match(channel)
            if params is not None:
                return function, params
        return None

    def find_private(self, channel: str, prefix: str) -> tuple[Function, dict[str, str]] | None:
        """The function that decides about a private channel.

        Its pattern begins with the prefix of private channels: one that was written for public
        channels, such as `*`, does not open them.
        """
        return self.find(
            [entry for entry in self.subscribe if entry[0].text.startswith(prefix)], channel
        )

    def add_single(self, kind: str, function: Function) -> None:
        """Register the one function of a kind."""
        self.single[kind] = function

    def add_pattern(
        self, entries: list[tuple[Pattern, Function]], text: str, function: Function
    ) -> None:
        """Register a function for a pattern, in the order of registration."""
        pattern = Pattern(text)
        for index, (other, _) in enumerate(entries):
            if other.text == text:
                entries[index] = (pattern, function)
                return
        entries.append((pattern, function))


registry = Registry()
"""What the modules `realtime.py` of the site's apps registered."""


def connect(function: F) -> F:
    """Who is a client that brings no token? Called with a `ConnectRequest`.

    Return `Connected(...)`, or None when you do not know. Raise `Error` or `Disconnect` to
    refuse.
    """
    registry.add_single("connect", function)
    return function


def refresh(function: F) -> F:
    """May an expiring connection go on? Called with a `RefreshRequest`.

    Return the new expiry in Unix seconds, or `Connected(...)` with a `ttl`; None lets it
    expire, and so does `Error`. When it fails, it is asked again a minute later.
    """
    registry.add_single("refresh", function)
    return function


def info(function: F) -> F:
    """Connection info of a user who is known by the login session. Called with the user.

    Return something JSON-serialisable; others see it as `conn_info`.
    """
    registry.add_single("info", function)
    return function


def message(function: F) -> F:
    """A client sent something and wants no answer. Called with a `MessageRequest`."""
    registry.add_single("message", function)
    return function


def subscribe(*patterns: str) -> Callable[[F], F]:
    """May a client subscribe to a channel of these patterns? Called with a `SubscribeRequest`.

    Return None or True to allow, False to refuse, anything else to allow with it as channel
    info; raise `Error` or `Disconnect` to refuse in your own words. The options of the channel
    are asked first. Private channels need tokens: the view of `realtime.urls` makes one when
    the function for a pattern that begins with `$` allows it.
    """

    return _for_patterns(registry.subscribe, patterns)


def publish(*patterns: str) -> Callable[[F], F]:
    """May a client publish into a channel of these patterns? Called with a `PublishRequest`.

    Return None or True to publish what it sent, False to refuse, anything else to publish
    that instead; raise `Error` or `Disconnect` to refuse in your own words. The option
    `publish` must be on.
    """

    return _for_patterns(registry.publish, patterns)


@overload
def rpc(method: F) -> F: ...
@overload
def rpc(method: str) -> Callable[[F], F]: ...
def rpc(method: Any) -> Any:
    """A method that clients can call, named as the function or as given.

    Called with an `RPCRequest`. Return something JSON-serialisable, or None for nothing;
    raise `Error(code, message)` with a code of your own (1000 and above) to fail.
    """
    if callable(method):
        registry.methods[method.__name__] = method
        return method
    if not isinstance(method, str):
        raise TypeError("a method has a name")

    def register(function: F) -> F:
        registry.methods[method] = function
        return function

    return register


def _for_patterns(
    entries: list[tuple[Pattern, Function]], patterns: tuple[str, ...]
) -> Callable[[F], F]:
    # `@hooks.subscribe` without patterns would leave open what the function should guard
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError('channel patterns are wanted, as in @hooks.subscribe("room:{room}")')

    def register(function: F) -> F:
        for pattern in patterns:
            registry.add_pattern(entries, pattern, function)
        return function

    return register
