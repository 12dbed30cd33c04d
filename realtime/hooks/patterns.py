"""Patterns of channel names: `chat:*`, `room:{room}`.

`*` matches any text, the empty one included. `{name}` matches one or more characters other
than `:`, which the hook finds in `request.params`. Everything else matches itself. A pattern
is matched against the whole name: `chat:*` does not match the private channel `$chat:staff`.
Where a name can be divided in several ways, earlier parts are as long as possible, as in a
regular expression.

A regular expression is no way to match them: names come from clients, and it tries every
length of every part, so a well chosen name of 255 characters keeps four stars busy for
seconds. `Pattern.match` looks at each character once per part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

_SIGN = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}|(\*+)|([{}])")

Places: TypeAlias = Collection[int]
"""Places in a channel name: place 3 is between the third and the fourth character."""


class _Text(NamedTuple):
    """A part that matches itself."""

    text: str

    def starts(self, channel: str, ends: Places) -> Places:
        """Return the places from which this part reaches one of these ends."""
        size = len(self.text)
        return {end - size for end in ends if channel.endswith(self.text, 0, end)}

    def end(self, channel: str, start: int, ends: Places) -> int:
        """Return the last of these ends that this part reaches from a place; there is one."""
        return start + len(self.text)


class _Star(NamedTuple):
    """A part that matches any text."""

    def starts(self, channel: str, ends: Places) -> Places:
        return range(max(ends, default=-1) + 1)

    def end(self, channel: str, start: int, ends: Places) -> int:
        return max(ends)


class _Name(NamedTuple):
    """A part that matches one or more characters other than a colon."""

    name: str

    def starts(self, channel: str, ends: Places) -> Places:
        starts: set[int] = set()
        for end in sorted(ends, reverse=True):
            if end - 1 not in starts:  # or a later end between the same colons gave them
                starts.update(range(channel.rfind(":", 0, end) + 1, end))
        return starts

    def end(self, channel: str, start: int, ends: Places) -> int:
        colon = channel.find(":", start)
        limit = len(channel) if colon < 0 else colon
        return max(end for end in ends if start < end <= limit)


class Pattern:
    """One pattern."""

    __slots__ = ("_beginning", "_only", "_parts", "names", "text")

    def __init__(self, text: str) -> None:
        """
        Raises:
            ValueError: the pattern is empty, a name occurs twice, or braces hold no name.
        """
        if not text:
            raise ValueError("an empty pattern matches no channel")
        self.text = text
        self._parts = list(_read(text))
        names = tuple(part.name for part in self._parts if isinstance(part, _Name))
        self.names = names
        """The names in it, in their order."""
        if len(names) > len(set(names)):
            raise ValueError(f"{text!r} is not a pattern: a name occurs twice in it")
        first = self._parts[0]
        self._beginning = first.text if isinstance(first, _Text) else ""
        if self._beginning:
            del self._parts[0]
        rest = self._parts
        # nearly all patterns are like `room:{room}`
        self._only = rest[0].name if len(rest) == 1 and isinstance(rest[0], _Name) else None

    @property
    def beginning(self) -> str:
        """The text with which every channel begins that it matches."""
        return self._beginning

    @property
    def has_star(self) -> bool:
        """Whether a part of it has no name."""
        return any(isinstance(part, _Star) for part in self._parts)

    def may_begin(self, beginning: str) -> bool:
        """Return whether it matches any channel with this beginning."""
        return _may_begin(
            ([_Text(self._beginning)] if self._beginning else []) + self._parts, beginning
        )

    def fill(self, params: Mapping[str, str], star: str = "") -> str:
        """Return the pattern with texts in place of its names, and of its stars."""
        texts = (
            part.text
            if isinstance(part, _Text)
            else params[part.name]
            if isinstance(part, _Name)
            else star
            for part in self._parts
        )
        return self._beginning + "".join(texts)

    def match(self, channel: str) -> dict[str, str] | None:
        """Return the names of the pattern with their texts in a channel; None if it differs."""
        if not channel.startswith(self._beginning):
            return None
        if self._only is not None:
            rest = channel[len(self._beginning) :]
            return {self._only: rest} if rest and ":" not in rest else None
        # backwards: the places from which the remaining parts match the rest of the channel
        places: list[Places] = [{len(channel)}]
        for part in reversed(self._parts):
            places.append(part.starts(channel, places[-1]))
        start = len(self._beginning)
        if start not in places.pop():
            return None
        # forwards: each part as long as the remaining ones allow
        params: dict[str, str] = {}
        for part in self._parts:
            end = part.end(channel, start, places.pop())
            if isinstance(part, _Name):
                params[part.name] = channel[start:end]
            start = end
        return params


def _may_begin(parts: Sequence[_Text | _Star | _Name], beginning: str) -> bool:
    if not beginning or not parts:
        return not beginning
    first, *rest = parts
    match first:
        case _Star():
            return True
        case _Text(text) if len(text) < len(beginning):
            return beginning.startswith(text) and _may_begin(rest, beginning[len(text) :])
        case _Text(text):
            return text.startswith(beginning)
    colon = beginning.find(":")
    return colon < 0 or any(_may_begin(rest, beginning[end:]) for end in range(1, colon + 1))


def _read(text: str) -> Iterator[_Text | _Star | _Name]:
    """Divide a pattern into its parts."""
    end = 0
    for sign in _SIGN.finditer(text):
        if sign[3]:
            # as text it would match no channel, and leave open what it should guard
            raise ValueError(f"{text!r} is not a pattern: braces hold a name, as in {{room}}")
        if end < sign.start():
            yield _Text(text[end : sign.start()])
        yield _Star() if sign[2] else _Name(sign[1])
        end = sign.end()
    if end < len(text):
        yield _Text(text[end:])
