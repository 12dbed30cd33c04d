"""Regular expressions for names that strangers choose: the time of a search is bounded.

Python's `re` tries one way through an expression after the other. For `^(a+)+$` the number of ways
doubles with each character, so a name of 40 characters would take hours. Here all ways are followed
at once: a search takes as many steps as there are states times characters. What cannot be searched
for in this way (assertions that look around, references to groups, possessive repeats) is refused,
as in the reference server.

    a(b|c)*     ─►  a ─► split ─► b ─┐        a state is a character, a place such as ^,
                          │ ├───► c ─┤        or a split, which leads on to several states
                          │ ◄────────┘
                          └─► end

The syntax is that of `re`, which checks it and decides about each single character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

MAX_STATES = 500
"""States of an expression. Repeats that are counted have their states as often as they count."""
MAX_CHARACTERS = 1024
"""Characters of a name. Longer ones never match."""

_TOKEN = re.compile(
    r"""
    (?P<set> \[\^?\]?(?:\\.|[^\]\\])*\] )
  | (?P<reference> \\[1-9](?![0-7]{2}) )
  | (?P<escape> \\(?:x..|u....|U........|N\{[^}]*\}|0[0-7]{0,2}|[1-7][0-7]{2}|.) )
  | (?P<repeat> (?:[*+?]|\{[0-9]+(?:,[0-9]*)?\}|\{,[0-9]+\})[?+]? )
  | (?P<group> \((?:\?:|\?P<\w+>|(?!\?)) )
  | (?P<special> \(\?.? )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")
_PLACES = ("^", "$", r"\A", r"\Z", r"\b", r"\B")

Match: TypeAlias = Callable[[str, int], "re.Match[str] | None"]


class _State(NamedTuple):
    kind: Literal["character", "place", "split", "end"]
    following: tuple[int, ...] = ()
    match: Match | None = None


class _States:
    """The states of an expression, in any order."""

    def __init__(self) -> None:
        self.all: list[_State] = []

    def add(self, state: _State) -> int:
        if len(self.all) >= MAX_STATES:
            raise re.error(f"it has more than {MAX_STATES} states")
        self.all.append(state)
        return len(self.all) - 1


Part: TypeAlias = Callable[[_States, int], int]
"""Adds the states of a part, of which the last one leads to a given one. Returns the first one."""


class NamePattern:
    """A regular expression that is searched for in names."""

    def __init__(self, expression: str) -> None:
        """
        Raises:
            re.error, RecursionError, OverflowError: it is not a regular expression, or cannot be
                searched for in bounded time.
        """
        whole = re.compile(expression)
        if whole.flags & re.VERBOSE:
            raise re.error("the flag x is not supported")
        flags = _FLAGS.match(expression)
        text = expression[flags.end() :] if flags else expression
        part = _Parser(text, whole.flags).parse()
        states = _States()
        self._start = part(states, states.add(_State("end")))
        self._states = states.all

    def is_in(self, name: str) -> bool:
        """Return whether the expression matches anywhere in a name."""
        if len(name) > MAX_CHARACTERS:
            return False
        reached: set[int] = set()
        for at in range(len(name) + 1):
            waiting = self._follow(reached | {self._start}, name, at)
            if waiting is None:
                return True
            reached = {
                state.following[0]
                for state in waiting
                if at < len(name) and state.match is not None and state.match(name, at)
            }
        return False

    def _follow(self, reached: set[int], name: str, at: int) -> list[_State] | None:
        """Return the states that wait for the character at a place; None if the end is reached."""
        waiting = []
        seen, to_do = set(reached), list(reached)
        while to_do:
            state = self._states[to_do.pop()]
            if state.kind == "end":
                return None
            if state.kind == "character":
                waiting.append(state)
            elif state.match is None or state.match(name, at):
                new = [number for number in state.following if number not in seen]
                seen.update(new)
                to_do += new
        return waiting


@lru_cache(maxsize=256)
def _pattern(expression: str) -> NamePattern:
    return NamePattern(expression)


@lru_cache(maxsize=4096)
def matches(expression: str, name: str) -> bool:
    """Return whether an expression matches anywhere in a name; remembers the last answers.

    Raises:
        re.error, RecursionError, OverflowError: see `NamePattern`.
    """
    return _pattern(expression).is_in(name)


class _Parser:
    """Reads an expression that `re` has accepted."""

    def __init__(self, text: str, flags: int) -> None:
        self._flags = flags
        self._tokens = [(str(found.lastgroup), found[0]) for found in _TOKEN.finditer(text)]
        self._tokens.reverse()

    def parse(self) -> Part:
        options = [self._sequence()]
        while self._tokens and self._tokens[-1] == ("other", "|"):
            self._tokens.pop()
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _either(options)

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._tokens and self._tokens[-1] not in (("other", "|"), ("other", ")")):
            kind, text = self._tokens.pop()
            match kind:
                case "repeat":
                    parts.append(_repeated(parts.pop(), text))
                case "group":
                    parts.append(self.parse())
                    self._tokens.pop()  # the closing parenthesis
                case "special" | "reference":
                    raise re.error(f"{text} is not supported")
                case _:
                    parts.append(self._single(text))
        return _in_order(parts)

    def _single(self, text: str) -> Part:
        if text in _PLACES:
            # as in the reference server, $ is no place before a line break at the end
            is_end = text == "$" and not self._flags & re.MULTILINE
            return _state("place", re.compile(r"\Z" if is_end else text, self._flags).match)
        return _state("character", re.compile(text, self._flags).match)


def _state(kind: Literal["character", "place"], match: Match) -> Part:
    return lambda states, after: states.add(_State(kind, (after,), match))


def _either(options: Sequence[Part]) -> Part:
    return lambda states, after: states.add(
        _State("split", tuple(option(states, after) for option in options))
    )


def _in_order(parts: Sequence[Part]) -> Part:
    def build(states: _States, after: int) -> int:
        # a state also for nothing, so that the number of states bounds the time to build them
        after = after if parts else states.add(_State("split", (after,)))
        for part in reversed(parts):
            after = part(states, after)
        return after

    return build


def _repeated(part: Part, text: str) -> Part:
    counted = text.rstrip("?+") if text.startswith("{") else text[0]
    if text.endswith("+") and text != "+":
        raise re.error(f"{text} is not supported")
    least, most = _bounds(counted)

    def build(states: _States, after: int) -> int:
        if most is None:
            start = states.add(_State("split"))
            states.all[start] = _State("split", (part(states, start), after))
        else:
            start = after
            for _ in range(most - least):
                start = states.add(_State("split", (part(states, start), after)))
        for _ in range(least):
            start = part(states, start)
        return start

    return build


def _bounds(text: str) -> tuple[int, int | None]:
    """Return how often a repeat repeats, at least and at most; None for any number."""
    match text:
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
    least, comma, most = text[1:-1].partition(",")
    if not comma:
        return int(least), int(least)
    return int(least or 0), int(most) if most else None
