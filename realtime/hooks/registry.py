"""The hooks that a site registers: by kind, by channel pattern and by method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from realtime.hooks.patterns import Pattern

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Registry:
    """The hooks of a site. A later hook replaces an earlier one for the same kind or pattern."""

    def __init__(self, *, is_loaded: bool = True) -> None:
        """
        Args:
            is_loaded: the modules that register hooks were imported. Until then nothing is served,
                because without hooks channels would be open that a hook refuses.
        """
        self.is_loaded = is_loaded
        self.single: dict[str, Function] = {}
        """Kind → function, for kinds with one hook: connect, refresh, info, message."""
        self.subscribe: list[tuple[Pattern, Function]] = []
        self.publish: list[tuple[Pattern, Function]] = []
        self.map_put: list[tuple[Pattern, Function]] = []
        self.answer_end: list[tuple[Pattern, Function]] = []
        self.answer_stop: list[tuple[Pattern, Function]] = []
        """Of the app `realtime.answers`, by the channel of the answer."""
        self.methods: dict[str, Function] = {}
        """RPC method → function."""
        self.guarded: list[str] = []
        """Patterns of `subscribe` that come before all others; see `add_guard`."""

    def __bool__(self) -> bool:
        entries = self.single or self.subscribe or self.publish or self.map_put
        return bool(entries or self.methods)

    def functions(self) -> list[Function]:
        """Return all of them, each once."""
        entries = (*self.subscribe, *self.publish, *self.map_put)
        patterns = (function for _, function in entries)
        return list(dict.fromkeys((*self.single.values(), *patterns, *self.methods.values())))

    def find(
        self, entries: list[tuple[Pattern, Function]], channel: str
    ) -> tuple[Function, dict[str, str]] | None:
        """Return the function of the first pattern that matches a channel, with its params."""
        for pattern, function in entries:
            params = pattern.match(channel)
            if params is not None:
                return function, params
        return None

    def find_private(self, channel: str, prefix: str) -> tuple[Function, dict[str, str]] | None:
        """Return the function that decides about a private channel, with its params.

        Only patterns that begin with the prefix of private channels count: a pattern for public
        channels, such as `*`, must not open them.
        """
        return self.find(
            [entry for entry in self.subscribe if entry[0].text.startswith(prefix)], channel
        )

    def add_single(self, kind: str, function: Function) -> None:
        """Register the function of a kind."""
        self.single[kind] = function

    def add_guard(self, text: str, function: Function) -> None:
        """Register a function for a pattern that no other subscribe hook may answer for.

        It takes precedence over the patterns of the site, whenever these are registered.

        Raises:
            ValueError: the site has a hook for this very pattern, or it is no pattern.
        """
        if text not in self.guarded:
            if any(pattern.text == text for pattern, _ in self.subscribe):
                raise ValueError(f"a subscribe hook decides about {text!r} already")
            self.subscribe.insert(len(self.guarded), (Pattern(text), function))
            self.guarded.append(text)

    def add_pattern(
        self, entries: list[tuple[Pattern, Function]], text: str, function: Function
    ) -> None:
        """Register a function for a pattern; earlier patterns take precedence.

        Raises:
            ValueError: it is guarded, or no pattern.
        """
        pattern = Pattern(text)
        if entries is self.subscribe and text in self.guarded:
            raise ValueError(f"an app of the service decides about {text!r} already")
        for index, (other, _) in enumerate(entries):
            if other.text == text:
                entries[index] = (pattern, function)
                return
        entries.append((pattern, function))


registry = Registry(is_loaded=False)
"""The hooks of the modules `realtime.py` in the site's apps. The Django app loads them."""


def connect(function: F) -> F:
    """Register the hook that identifies clients without a token, from a `ConnectRequest`.

    Return `Connected(...)`, or None if you do not know the client. Raise `Error` or
    `Disconnect` to refuse it.
    """
    registry.add_single("connect", function)
    return function


def refresh(function: F) -> F:
    """Register the hook that extends expiring connections, from a `RefreshRequest`.

    Return the new expiry in Unix seconds, or `Connected(...)` with a `ttl`. None lets the
    connection expire, and so does `Error`. If the hook fails, it is called again a minute
    later.
    """
    registry.add_single("refresh", function)
    return function


def info(function: F) -> F:
    """Register the hook for the connection info of a user with a login session, from the user.

    Return a JSON-serialisable value, which others see as `conn_info`.
    """
    registry.add_single("info", function)
    return function


def message(function: F) -> F:
    """Register the hook for messages without reply, from a `MessageRequest`."""
    registry.add_single("message", function)
    return function


def subscribe(*patterns: str) -> Callable[[F], F]:
    """Register the hook that decides about subscribing, from a `SubscribeRequest`.

    Return None or True to allow, False to refuse, `Allowed(ttl=...)` to be asked again after a
    while, and any other value to allow with this value as channel info. Raise `Error` or
    `Disconnect` to refuse with your own code. The options of the channel are checked first. What
    no pattern matches in the namespaces of these patterns is refused.
    Private channels need tokens: the view of `realtime.urls` makes one if the hook for a pattern
    that begins with `$` allows it.
    """

    return _for_patterns(registry.subscribe, patterns)


def publish(*patterns: str) -> Callable[[F], F]:
    """Register the hook that decides about publishing, from a `PublishRequest`.

    Return None or True to publish the data that the client sent, False to refuse, and any other
    value to publish it instead. Raise `Error` or `Disconnect` to refuse with your own code. The
    option `publish` must be on. What no pattern matches in the namespaces of these patterns is
    refused.
    """

    return _for_patterns(registry.publish, patterns)


def map_put(*patterns: str) -> Callable[[F], F]:
    """Register the hook that decides about changes of maps, from a `MapPutRequest`.

    Answer as a publish hook does; `Put(key, data)` changes the key, too. The answer to a removal
    is yes or no. The option `map_publish` must be on. What no pattern matches in the namespaces of
    these patterns is refused.
    """
    return _for_patterns(registry.map_put, patterns)


def answer_end(*patterns: str) -> Callable[[F], F]:
    """Register the hook that is called when an answer ends, in the transaction that ends its row.

    It is called with the row, once. Save the answer in your own tables here. If it raises, the row
    has not ended, and it is called again. Needs the app `realtime.answers`.
    """
    return _for_patterns(registry.answer_end, patterns)


def answer_stop(*patterns: str) -> Callable[[F], F]:
    """Register the hook that decides who may stop an answer, from a `StopRequest`.

    Return True to allow. Without a hook, the user who asked may.
    """
    return _for_patterns(registry.answer_stop, patterns)


@overload
def rpc(method: F) -> F: ...
@overload
def rpc(method: str) -> Callable[[F], F]: ...
def rpc(method: Any) -> Any:
    """Register a method that clients can call, by the name of the function or by a given name.

    It is called with an `RPCRequest`. Return a JSON-serialisable value, or None for none. Raise
    `Error(code, message)` with your own code (1000 and above) to fail.
    """
    if callable(method):
        registry.methods[method.__name__] = method
        return method
    if not isinstance(method, str):
        raise TypeError("the name of a method must be text")

    def register(function: F) -> F:
        registry.methods[method] = function
        return function

    return register


def _for_patterns(
    entries: list[tuple[Pattern, Function]], patterns: tuple[str, ...]
) -> Callable[[F], F]:
    # `@hooks.subscribe` without patterns would leave the channels open that it should guard
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError('channel patterns expected, as in @hooks.subscribe("room:{room}")')

    def register(function: F) -> F:
        for pattern in patterns:
            registry.add_pattern(entries, pattern, function)
        return function

    return register
