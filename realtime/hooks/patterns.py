"""Patterns of channel names: `chat:*`, `room:{room}`.

`*` stands for any text, also none; `{name}` for any text but none and without `:`, which the
hook finds in `request.params`. Everything else stands for itself. A pattern is about the whole
name: `chat:*` does not match the private channel `$chat:staff`. Where a name can be read in
several ways, what comes first takes as much as it can.

Names come from clients and are matched on the event loop. A regular expression tries every
length of every part: a name of 255 characters, chosen well, keeps four stars busy for seconds.
Here each part is looked at once, from the last one to the first, with sets of places: an
integer whose bit 3 is set has the place before the fourth character in it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_PART = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}|(\*+)|([{}])")


class _Part(NamedTuple):
    kind: Literal["text", "star", "name"]
    text: str = ""
    """The text itself, or the name."""


class Pattern:
    """One pattern."""

    __slots__ = ("_beginning", "_parts", "text")

    def __init__(self, text: str) -> None:
        """
        Raises:
            ValueError: the pattern is empty, a name occurs twice, or braces hold no name.
        """
        if not text:
            raise ValueError("an empty pattern matches no channel")
        self.text = text
        self._parts: list[_Part] = []
        end = 0
        for part in _PART.finditer(text):
            if part[3]:
                # taken literally it would match nothing, and what it should guard stood open
                raise ValueError(f"{text!r} is no pattern: braces hold a name, as in {{room}}")
            self._add_text(text[end : part.start()])
            self._parts.append(_Part("star") if part[2] else _Part("name", part[1]))
            end = part.end()
        self._add_text(text[end:])
        names = [part.text for part in self._parts if part.kind == "name"]
        if len(names) > len(set(names)):
            raise ValueError(f"{text!r} is no pattern: a name occurs twice in it")
        first = self._parts[0]
        self._beginning = first.text if first.kind == "text" else ""

    def _add_text(self, text: str) -> None:
        if text:
            self._parts.append(_Part("text", text))

    def match(self, channel: str) -> dict[str, str] | None:
        """The texts of the names in a channel; None when it does not match."""
        if not channel.startswith(self._beginning):
            return None
        ends = [1 << len(channel)]
        for part in reversed(self._parts):
            ends.append(_begins(part, channel, ends[-1]))
        if not ends.pop() & 1:
            return None
        place = 0
        params: dict[str, str] = {}
        for part in self._parts:
            end = _end(part, channel, place, ends.pop())
            if part.kind == "name":
                params[part.text] = channel[place:end]
            place = end
        return params


def _begins(part: _Part, channel: str, ends: int) -> int:
    """The places at which a part may begin, so that it can end at one of these."""
    begins = 0
    match part.kind:
        case "text":
            place = channel.find(part.text)
            while place >= 0:
                begins |= 1 << place
                place = channel.find(part.text, place + 1)
            begins &= ends >> len(part.text)
        case "star":
            begins = (1 << ends.bit_length()) - 1
        case "name":
            reaches = 0
            for place in range(len(channel) - 1, -1, -1):
                reaches = channel[place] != ":" and (reaches | ends >> place + 1) & 1
                begins |= reaches << place
    return begins


def _end(part: _Part, channel: str, place: int, ends: int) -> int:
    """The last of these places at which a part may end that begins at a place."""
    match part.kind:
        case "text":
            return place + len(part.text)
        case "star":
            return ends.bit_length() - 1
        case "name":
            colon = channel.find(":", place)
            return (ends if colon < 0 else ends & (2 << colon) - 1).bit_length() - 1
