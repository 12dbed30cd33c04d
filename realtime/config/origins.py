"""The origin check of handshakes: option `allowed_origins`.

Patterns are globs over the whole lower-cased Origin (`scheme://host[:port]`): `*` is any
run of characters, dots included, `?` one character, `[..]` a set, `{a,b}` alternatives.

Beyond the spec: as Centrifugo 2.8; requests without an Origin header are not from
browsers and pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

ORIGIN_MAX_LENGTH = 300
"""A scheme, a host of 253 characters and a port."""
ALTERNATIVES_ALLOWED = 1000
"""Combinations of what the braces of one pattern offer."""

STAR = ".*"
Glob = tuple[str, ...]
"""A glob without braces: stars, and regular expressions of one character each."""


def is_allowed(origin: str | None, patterns: Iterable[str] | None) -> bool:
    """Whether a handshake with this Origin header may go on. No patterns given: any may."""
    if patterns is None or origin is None:
        return True
    if len(origin) > ORIGIN_MAX_LENGTH:
        return False
    origin = origin.lower()
    return any(_compile(pattern).fullmatch(origin) for pattern in patterns)


def check_pattern(pattern: str) -> None:
    """Refuse what is not a glob.

    Raises:
        ValueError
    """
    _compile(pattern)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression that looks at each place of an Origin once for each part."""
    globs, _ = _read(pattern, 0, 0)
    expressions = [_expression(glob) for glob in globs]
    try:
        for expression in expressions:  # one that is wrong may be right beside another one
            re.compile(expression)
        return re.compile("|".join(expressions), re.DOTALL)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a pattern: {error}") from None


def _read(pattern: str, position: int, depth: int) -> tuple[list[Glob], int]:
    """What a pattern means from a place up to where its braces close: globs without braces."""
    read: list[Glob] = []
    """Those before the last comma."""
    globs: list[Glob] = [()]
    while position < len(pattern):
        character = pattern[position]
        position += 1
        match character:
            case "*":
                globs = _joined(globs, [(STAR,)])
            case "?":
                globs = _joined(globs, [(".",)])
            case "[":
                end = pattern.find("]", position + 1)
                if end < 0:
                    raise ValueError(f"unclosed [ in {pattern!r}")
                inside = pattern[position:end].replace("\\", "\\\\").replace("[", "\\[")
                if inside.startswith("!"):
                    inside = "^" + inside[1:]
                globs = _joined(globs, [(f"[{inside}]",)])
                position = end + 1
            case "{":
                inner, position = _read(pattern, position, depth + 1)
                globs = _joined(globs, inner)
            case "}" if depth:
                return read + globs, position
            case "," if depth:
                read += globs
                globs = [()]
            case _:
                globs = _joined(globs, [(re.escape(character),)])
    if depth:
        raise ValueError(f"unclosed {{ in {pattern!r}")
    return globs, position


def _joined(globs: list[Glob], following: list[Glob]) -> list[Glob]:
    if len(globs) * len(following) > ALTERNATIVES_ALLOWED:
        raise ValueError(f"more than {ALTERNATIVES_ALLOWED} combinations of alternatives")
    return [glob + more for glob in globs for more in following]


def _expression(glob: Glob) -> str:
    """A glob without braces as a regular expression.

    What stands between two stars is taken where it comes first, and never looked for again:
    it has one length only, so a later place could not help what follows.
    """
    parts = [""]
    for token in glob:
        if token == STAR:
            parts.append("")
        else:
            parts[-1] += token
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    return first + "".join(f"(?>.*?{part})" for part in middle if part) + STAR + last
